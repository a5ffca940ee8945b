"""What made the tokens, and which turns are learned, survive export and import."""

import json

import pytest

from testing.factories import make_replay_entry, make_task, make_team, make_trajectory, make_user
from testing.replay_imports import ImportRefused, import_lines
from tests.webapp.replay.test_transfer import line
from training.contracts.context_fingerprint import shared_fingerprint
from webapp.replay.formats.slime_export import export_line, export_record
from webapp.trajectories.row_to_types import trajectory_of

pytestmark = pytest.mark.django_db
FINGERPRINT = "tokenizer:abc style:computer-use"


def imported(text, task):
    team = make_team()
    (entry,) = import_lines(lines=[text], team=team, task_set=task.task_set, user=make_user(team=team))
    return entry.trajectory


def take_over(reward=1.0):
    """The agent, a person, the agent again."""
    row = make_trajectory(turns=3, reward=reward, source="human")
    for turn, source in zip(row.turns.all(), ("policy", "human", "policy"), strict=True):
        turn.source = source
        turn.completion = turn.completion | {"fingerprint": FINGERPRINT} if source == "policy" else None
        turn.save()
    return row


def test_the_fingerprint_of_every_completion_comes_back_and_names_the_trajectory():
    entry = make_replay_entry(trajectory=take_over())
    back = imported(export_line(entry), entry.trajectory.task)
    assert back.fingerprint == FINGERPRINT
    assert shared_fingerprint(trajectory_of(back).turns) == FINGERPRINT
    assert trajectory_of(back).turns == trajectory_of(entry.trajectory).turns


def test_rows_of_before_are_unknown():
    entry = make_replay_entry()
    assert imported(export_line(entry), entry.trajectory.task).fingerprint is None


def test_an_export_masks_what_a_person_had_to_mend():
    messages = export_record(make_replay_entry(trajectory=take_over()))["messages"]
    masks = [message.get("step_loss_mask", 1) for message in messages if message["role"] == "assistant"]
    assert masks == [0, 1, 1]


@pytest.mark.parametrize(
    ("mask", "is_context"), [({}, False), ({"step_loss_mask": 1}, False), ({"step_loss_mask": 0}, True)]
)
def test_an_imported_mask_is_kept(mask, is_context):
    task = make_task()
    record = json.loads(line(task))
    record["messages"][-1] |= mask
    (turn,) = trajectory_of(imported(json.dumps(record), task)).turns
    assert turn.is_context is is_context


@pytest.mark.parametrize("mask", [2, "0", None, [0]])
def test_another_mask_is_refused_by_its_field(mask):
    task = make_task()
    record = json.loads(line(task))
    record["messages"][-1]["step_loss_mask"] = mask
    with pytest.raises(ImportRefused, match=r"line 1: messages\[2\]\.step_loss_mask: not 0 or 1"):
        imported(json.dumps(record), task)


@pytest.mark.parametrize("line", ["x" * 301, "a\x00b", "tokenizer:\u00fc"])
def test_a_fingerprint_that_cannot_be_stored_is_refused_by_its_field(line):
    entry = make_replay_entry(trajectory=take_over())
    record = export_record(entry)
    record["metadata"]["deskhand"]["turns"][0]["completion"]["fingerprint"] = line
    with pytest.raises(ImportRefused, match=r"turns\[0\]\.completion\.fingerprint"):
        imported(json.dumps(record), entry.trajectory.task)
