"""AgentNet, of OpenCUA, comes into the replay buffer."""

import pytest

from testing.demonstration_sets import ACTED, code_set, imported
from webapp.experiments.models import TaskStatus


@pytest.mark.django_db
def test_agentnet_comes_in_as_demonstrations_only(tmp_path):
    entry = imported(code_set(tmp_path / "set", ACTED), "agentnet", tmp_path)
    task = entry.trajectory.task
    assert task.instruction == "Sort the table by its first column."
    assert (task.status, "no evaluator" in task.reason) == (TaskStatus.UNSUPPORTED, True)
    turns = entry.trajectory.turns.order_by("index")
    actions = [turn.action for turn in turns]
    assert [action["kind"] for action in actions] == [
        "click", "key", "move", "drag", "type", "scroll", "terminate",
    ]  # fmt: skip
    assert (actions[0]["x"], actions[0]["y"]) == (250, 250)
    assert (actions[3]["to_x"], actions[3]["to_y"]) == (900, 100)
    assert actions[4]["text"] == "x = 0.5"
    assert turns[0].completion["text"].startswith("thought 0\n")
    assert len({turn.frame for turn in turns}) == len(ACTED)
