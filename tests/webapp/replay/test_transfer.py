"""Entries leave as JSON lines of a known format and come back as they were; errors name the line."""

import json
from base64 import b64encode

import pytest

from testing.factories import (
    make_experiment,
    make_group,
    make_replay_entry,
    make_task,
    make_team,
    make_trajectory,
    make_user,
)
from testing.first_desk_screens import menu_screen
from testing.replay_imports import ImportRefused, import_lines
from training.contracts.config import parse_config
from training.contracts.types import Action
from webapp.replay.formats.messages import ReadProblem, read_action
from webapp.replay.formats.slime_export import CannotExport, action_text, export_line, export_record
from webapp.replay.models import ReplayEntry
from webapp.replay.services.imported_records import ASSUMED_TAG
from webapp.replay.services.labels import label_entry
from webapp.trajectories.row_to_types import turn_limit

pytestmark = pytest.mark.django_db


def line(task, *, screen=None, reward=1.0, call='{"action": "left_click", "coordinate": [12, 40]}', **more):
    picture = "data:image/png;base64," + b64encode(screen or menu_screen(2)).decode()
    record = {
        "messages": [
            {"role": "system", "content": "You operate a computer."},
            {"role": "user", "content": "<image>\n[Domain]\nmenu\n\n[Task]\nOpen the reports"},
            {"role": "assistant", "content": f"Action: go\n<tool_call>\n{call}\n</tool_call>"},
        ],
        "images": [picture],
        "task_id": task.task_id,
        "reward": reward,
    }
    return json.dumps({**record, **more})


def test_an_entry_of_ours_survives_the_round_trip_to_another_team():
    entry = make_replay_entry(turns=3)
    label_entry(entry=entry, user=make_user(), verdict="gold", tags=["clean"], note="short")
    text = export_line(entry)
    team = make_team()
    back = import_lines(
        lines=[text],
        team=team,
        task_set=entry.trajectory.task.task_set,
        user=make_user(team=team),
        keep_labels=True,
    )[0]
    assert (back.verdict, back.tags, back.note) == ("gold", ["clean"], "short")
    columns = ("index", "frame", "width", "height", "completion", "action", "source", "dialect")
    before = list(entry.trajectory.turns.values(*columns))
    assert [{**row, "completion": _kept(row)} for row in back.trajectory.turns.values(*columns)] == [
        {**row, "completion": _kept(row)} for row in before
    ]
    assert back.trajectory.reward == entry.trajectory.reward


def _kept(row):
    """What a completion holds beyond its defaults."""
    names = ("text", "token_ids", "behaviour_logprobs", "policy_version")
    return {name: row["completion"][name] for name in names}


def test_an_exported_record_has_as_many_images_as_image_marks():
    record = export_record(make_replay_entry(turns=4))
    marks = sum(m["content"].count("<image>") for m in record["messages"] if m["role"] == "user")
    assert marks == len(record["images"]) == 4
    assert all(image.startswith("data:image/png;base64,") for image in record["images"])
    assert [m["role"] for m in record["messages"]] == ["system", *["user", "assistant"] * 4]
    assert record["metadata"]["source"] == "human_label"


def test_a_turn_without_an_action_is_left_out_and_counted():
    entry = make_replay_entry(turns=3)
    entry.trajectory.turns.filter(index=1).update(action=None, parse_error="no action")
    record = export_record(entry)
    assert (record["num_steps"], record["metadata"]["num_dropped_turns"]) == (2, 1)


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "click", "x": 10, "y": 20},
        {"kind": "double_click", "x": 10, "y": 20},
        {"kind": "triple_click", "x": 10, "y": 20},
        {"kind": "right_click", "x": 1, "y": 2},
        {"kind": "middle_click", "x": 1, "y": 2},
        {"kind": "move", "x": 7, "y": 8},
        {"kind": "click"},
        {"kind": "drag", "x": 1, "y": 2, "to_x": 30, "to_y": 40},
        {"kind": "scroll", "x": 5, "y": 6, "scroll_y": -4},
        {"kind": "type", "text": 'say "hi" (now)'},
        {"kind": "type", "text": "two\nlines)"},
        {"kind": "key", "keys": ["ctrl", "s"]},
        {"kind": "wait", "seconds": 1.5},
        {"kind": "terminate", "status": "failure"},
    ],
)
def test_every_kind_of_action_reads_back_as_itself(values):
    action = Action.model_validate(values)
    assert read_action(action_text(action, "here"), "here").action == action


CALLS = [
    ({"action": "scroll", "coordinate": [5, 6], "direction": "left", "amount": 2}, {"scroll_x": -2}),
    ({"action": "scroll", "coordinate": [5, 6], "direction": "right"}, {"scroll_x": 3}),
    ({"action": "scroll", "coordinate": [5, 6]}, {"scroll_y": 3}),
    ({"action": "scroll", "coordinate": [5, 6], "pixels": 4}, {"scroll_y": -4}),
    ({"action": "mouse_move", "coordinate": [5, 6]}, {"kind": "move"}),
    ({"action": "moveTo", "coordinate": [5, 6]}, {"kind": "move"}),
    ({"action": "RightClick", "coordinate": [5, 6], "reason": "menu"}, {"kind": "right_click"}),
    ({"action": "left_click", "coordinate": None}, {"kind": "click", "x": None, "y": None}),
    ({"action": "key", "keys": ["CTRL", "pgup"]}, {"keys": ("ctrl", "Page_Up")}),
    ({"action": "key", "keys": "ctrl+enter"}, {"keys": ("ctrl", "Return")}),
    ({"action": "terminate", "status": "infeasible"}, {"status": "failure"}),
]


@pytest.mark.parametrize(("arguments", "means"), CALLS, ids=[json.dumps(call) for call, _ in CALLS])
def test_the_calls_of_others_mean_what_ours_mean(arguments, means):
    kind = {"kind": arguments["action"], **means}["kind"]
    point = {"x": 5, "y": 6} if "coordinate" in arguments else {}
    content = f"<tool_call>{json.dumps({'name': 'computer_use', 'arguments': arguments})}</tool_call>"
    assert read_action(content, "here").action == Action(**{**point, **means, "kind": kind})


@pytest.mark.parametrize(
    ("content", "action", "dialect"),
    [
        ("pyautogui.hscroll(-2, 5, 6)", {"kind": "scroll", "x": 5, "y": 6, "scroll_x": -2}, "pyautogui"),
        ("pyautogui.hotkey('CTRL', 'pagedown')", {"kind": "key", "keys": ["ctrl", "Page_Down"]}, "pyautogui"),
        ("Now pyautogui.click(5, 6) will do.", {"kind": "click", "x": 5, "y": 6}, "pyautogui"),
        ("pyautogui.click(5, 6, button='right')", {"kind": "right_click", "x": 5, "y": 6}, "pyautogui"),
        ("<action>scroll left 2</action>", {"kind": "scroll", "scroll_x": -2}, "keyboard-mouse"),
        ('<answer>{"action": "wait"}</answer>', {"kind": "wait", "seconds": 1.0}, "json"),
        ("<answer>FAIL</answer>", {"kind": "terminate", "status": "failure"}, "pyautogui"),
    ],
)
def test_every_dialect_of_a_policy_can_be_imported(content, action, dialect):
    found = read_action(content, "here")
    assert (found.action, found.dialect) == (Action.model_validate(action), dialect)


def test_a_message_with_several_calls_is_one_turn():
    found = read_action("pyautogui.keyDown('ctrl'); pyautogui.click(5, 6); pyautogui.press('a')", "here")
    assert [action.kind for action in found.actions] == ["key_down", "click", "key"]


def test_a_click_between_a_key_that_goes_down_and_up_is_one_action():
    found = read_action("pyautogui.keyDown('ctrl'); pyautogui.click(5, 6); pyautogui.keyUp('ctrl')", "here")
    assert [(action.kind, action.modifiers) for action in found.actions] == [("click", ("ctrl",))]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ('{"action": "key", "keys": ["volume_wheel"]}', "unknown key 'volume_wheel'"),
        ("First pyautogui.click(5, 6), then pyautogui.write('x').", "more than one action"),
        ("pyautogui.click(open('x'), 6)", "literal"),
        ("pyautogui.click(5, 6", "does not end"),
        ("<action>fly</action>", "unknown verb"),
    ],
)
def test_what_no_desktop_can_do_is_refused_by_its_field(content, part):
    with pytest.raises(ReadProblem, match=r"^messages\[2\]\.content: ") as refused:
        read_action(content, "messages[2]")
    assert part in str(refused.value)


def test_the_turn_limit_of_the_recording_comes_along():
    experiment = make_experiment(config=parse_config({"desktops": {"max_turns": 15}}).model_dump(mode="json"))
    entry = make_replay_entry(trajectory=make_trajectory(experiment=experiment, turns=12))
    task_set = entry.trajectory.task.task_set
    (back,) = import_lines(lines=[export_line(entry)], team=entry.team, task_set=task_set, user=make_user())
    assert (back.trajectory.experiment, turn_limit(back.trajectory)) == (None, 15)


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"raw_reward": 1.5}, "metadata.raw_reward: 1.5 is no score"),
        ({"deskhand": {"max_turns": "many"}}, "metadata.deskhand.max_turns: not a number"),
    ],
)
def test_a_number_that_would_break_a_later_reward_is_refused(metadata, field):
    task = make_task()
    with pytest.raises(ImportRefused, match=field):
        import_lines(
            lines=[line(task, metadata=metadata)], team=make_team(), task_set=task.task_set, user=make_user()
        )


def test_what_the_format_cannot_say_is_refused_by_name():
    sideways = Action(kind="scroll", scroll_x=2)
    with pytest.raises(CannotExport, match="entry 4, turn 2: “Scroll right 2”"):
        action_text(sideways, "entry 4, turn 2")


def test_a_foreign_record_becomes_a_human_entry_in_the_inbox():
    task, team = make_task(), make_team()
    entry = import_lines(lines=[line(task)], team=team, task_set=task.task_set, user=make_user())[0]
    turn = entry.trajectory.turns.get()
    assert (entry.verdict, entry.trajectory.source, entry.trajectory.policy_version) == (
        "inbox",
        "human",
        None,
    )
    assert turn.action == {"kind": "click", "x": 12, "y": 40}
    assert (turn.width, turn.height, turn.observation_text) == (512, 384, "Open the reports")


def test_a_missing_reward_counts_as_one_and_is_marked():
    task, team = make_task(), make_team()
    entry = import_lines(
        lines=[line(task, reward=None)], team=team, task_set=task.task_set, user=make_user()
    )[0]
    assert entry.trajectory.reward == 1.0
    assert entry.tags == [ASSUMED_TAG]


def test_a_chunk_of_a_task_belongs_to_the_task():
    task = make_task()
    text = line(task, task_id=f"{task.task_id}_chunk2")
    entry = import_lines(lines=[text], team=make_team(), task_set=task.task_set, user=make_user())[0]
    assert entry.trajectory.task == task


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task_id": "nowhere-1"}, "line 2: task_id: the task set .* has no task 'nowhere-1'"),
        ({"reward": "high"}, "line 2: reward: not a number"),
        ({"reward": 0.1}, "line 2: reward: 0.1 is below 0.5"),
        ({"images": ["data:image/png;base64,####"]}, r"line 2: images\[0\]: not base64"),
        ({"images": [b64encode(b"hello").decode()]}, r"line 2: images\[0\]: not an image"),
        ({"images": []}, r"line 2: messages\[1\]: has more <image> marks"),
        ({"images": ["sha256:" + "0" * 64]}, r"line 2: images\[0\]: no frame"),
        ({"messages": []}, "line 2: messages: missing"),
        ({"call": '{"action": "dance"}'}, r"line 2: messages\[2\].content: unknown action 'dance'"),
        ({"call": "__import__('os').system('true')"}, r"line 2: messages\[2\].content: holds no tool call"),
        (
            {"metadata": {"deskhand": {"turns": [{"index": "x"}]}}},
            r"line 2: metadata.deskhand.turns\[0\].index",
        ),
    ],
)
def test_one_bad_line_names_itself_and_nothing_is_stored_unasked(change, message):
    task = make_task()
    lines = [line(task), line(task, **change)]
    with pytest.raises(ImportRefused, match=message):
        import_lines(lines=lines, team=make_team(), task_set=task.task_set, user=make_user())
    assert not ReplayEntry.objects.exists()


def test_text_that_is_not_json_is_named_by_its_line():
    task = make_task()
    with pytest.raises(ImportRefused, match="line 1: not JSON"):
        import_lines(lines=["{"], team=make_team(), task_set=task.task_set, user=make_user())


def test_exported_image_names_are_understood_where_the_frames_are():
    entry = make_replay_entry(turns=2)
    text = export_line(entry, "sha256")
    assert len(text) < 6000
    back = import_lines(
        lines=[text], team=entry.team, task_set=entry.trajectory.task.task_set, user=make_user()
    )[0]
    frames = [list(e.trajectory.turns.values_list("frame", flat=True)) for e in (entry, back)]
    assert frames[0] == frames[1]


def test_the_signature_of_an_imported_entry_finds_its_original():
    task = make_task()
    group = make_group(task=task)
    entry = make_replay_entry(trajectory=make_trajectory(group=group, turns=2))
    said = json.dumps(entry.trajectory.turns.first().completion["text"])
    assert said in export_line(entry)
    twins = [
        import_lines(
            lines=[export_line(entry).replace(f'"text":{said}', f'"text":"said {n}"')],
            team=entry.team,
            task_set=task.task_set,
            user=make_user(),
        )[0]
        for n in range(2)
    ]
    assert twins[0].signature == twins[1].signature != ""
