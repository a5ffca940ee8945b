"""Trees and terminals travel with entries, in lines of ours and of Slime-OSWorld."""

import json
import time

import pytest

from testing.factories import make_replay_entry, make_task, make_team, make_user
from testing.observed_texts import read_with, tree, widget
from testing.replay_imports import import_lines
from training.contracts.observed_text import MeasuredTurn
from webapp.accounts.models import Team
from webapp.replay.formats.observed_texts import read_sections
from webapp.replay.formats.slime_export import export_line
from webapp.replay.models import ReplayEntry
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.services.frames import delete_unused_frames
from webapp.trajectories.services.texts import read_text

pytestmark = pytest.mark.django_db

TREE = tree(*(widget("label", f"line {number}", (0, number, 9, 9), "é") for number in range(60)))
TERMINAL = "user@desk:~$ ls\n\n[Task]\nnotes"


@pytest.fixture
def entry() -> ReplayEntry:
    entry = make_replay_entry(turns=2)
    first = entry.trajectory.turns.first()
    read_with(first, accessibility=TREE, terminal=TERMINAL)
    first.measured = {"screen_difference": 0.25, "tree_before": len(TREE)}
    first.save()
    return entry


def brought_back(line: str, entry: ReplayEntry, team: Team | None = None) -> list:
    team = team or make_team()
    task_set = entry.trajectory.task.task_set
    (back,) = import_lines(lines=[line], team=team, task_set=task_set, user=make_user(team=team))
    return list(back.trajectory.turns.order_by("index"))


def test_what_pruning_takes_meanwhile_is_stored_anew(entry):
    """The team has both when the line is read, and nothing shows them any more."""
    line, team, first = export_line(entry), entry.team, entry.trajectory.turns.first()
    delete_unused_frames([first.frame, first.accessibility], time.time() + 60)
    with pytest.raises(FileNotFoundError):
        read_frame(first.frame)
    back = brought_back(line, entry, team)[0]
    assert (back.frame, read_text(back.accessibility)) == (first.frame, TREE)
    assert read_frame(back.frame)


def test_a_line_of_ours_brings_back_raw_texts_and_facts(entry):
    text = export_line(entry)
    user = json.loads(text)["messages"][1]["content"]
    assert f"[Accessibility Tree]\n{TREE[:4096]}\n... (truncated)\n\n[Terminal Output]\nuser@desk" in user
    first, second = brought_back(text, entry)
    assert (read_text(first.accessibility), read_text(first.terminal)) == (TREE, TERMINAL)
    assert first.read_texts["accessibility"]["num_chars"] == len(TREE)
    assert MeasuredTurn.model_validate(first.measured) == MeasuredTurn(
        screen_difference=0.25, tree_before=len(TREE)
    )
    assert (second.accessibility, second.read_texts) == (None, None)


def test_a_text_that_is_not_what_it_is_named_is_left_out(entry):
    record = json.loads(export_line(entry))
    texts = record["metadata"]["deskhand"]["texts"]
    record["metadata"]["deskhand"]["texts"] = dict.fromkeys(texts, "another")
    first, _ = brought_back(json.dumps(record), entry)
    assert (first.accessibility, first.terminal, first.read_texts) == (None, None, None)


def test_a_line_of_slimes_brings_what_its_agent_read():
    task = make_task()
    user = "[Domain]\nmenu\n\n[Task]\nOpen it\n\n[Accessibility Tree]\n<a/>\n... (truncated)"
    user += "\n\n[Terminal Output]\n$ ls"
    call = '<tool_call>{"name":"computer_use","arguments":{"action":"wait"}}</tool_call>'
    later = "[Terminal Output]\n$ ls\nnotes\n\n[Last Action Result]\nAction 'WAIT' executed successfully."
    said = [("user", user), ("assistant", call), ("user", later), ("assistant", call)]
    messages = [{"role": role, "content": text} for role, text in said]
    line = json.dumps({"messages": messages, "task_id": task.task_id, "reward": 1.0})
    team = make_team()
    (back,) = import_lines(lines=[line], team=team, task_set=task.task_set, user=make_user(team=team))
    first, second = back.trajectory.turns.order_by("index")
    assert (read_text(first.accessibility), read_text(first.terminal)) == ("<a/>\n... (truncated)", "$ ls")
    assert first.observation_text == "Open it"
    assert (second.accessibility, read_text(second.terminal)) == (None, "$ ls\nnotes")


def test_sections_end_at_the_next_heading_alone():
    assert read_sections("[Terminal Output]\na\n\nb [x]\n\n[Task]\ndo") == {"terminal": "a\n\nb [x]"}
    assert read_sections("say [Terminal Output]\na") == {}
