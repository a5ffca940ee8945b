"""When milestones count as reached, and what a look that fails is worth."""

import pytest

from training.contracts.milestone import Milestone, ReachedMilestone
from training.contracts.types import Task
from workers.environments.milestone_watch import MilestoneWatch
from workers.tasks.errors import EvaluatorError, TaskErrorKind

NAMES = ("opened", "written", "sent")
TASK = Task(
    task_id="t", instruction="i", milestones=tuple(Milestone(name=name, evaluator={}) for name in NAMES)
)


class Desktop:
    """What can be seen of it at this moment."""

    def __init__(self) -> None:
        self.holds: set[str] = set()
        self.unreadable: set[str] = set()
        self.asked: list[str] = []

    def reached(self, milestones):
        (one,) = milestones
        self.asked.append(one.name)
        if one.name in self.unreadable:
            raise EvaluatorError(TaskErrorKind.TASK, f"{one.name} is half written")
        return [one.name] if one.name in self.holds else []


def test_each_is_reached_once_at_the_turn_behind_which_it_is_seen_first():
    desktop = Desktop()
    watch = MilestoneWatch(TASK, desktop)
    assert not watch.look(0)
    desktop.holds = {"written"}
    assert watch.look(1)
    desktop.holds, desktop.asked = {"opened"}, []
    assert watch.look(2)
    assert desktop.asked == ["opened", "sent"], "what was reached is not asked for again"
    assert watch.reached == [
        ReachedMilestone(name="written", turn=1),
        ReachedMilestone(name="opened", turn=2),
    ]


def test_what_cannot_be_read_is_not_reached_while_the_agent_works_and_an_error_at_the_end():
    desktop = Desktop()
    desktop.unreadable, desktop.holds = {"opened"}, {"sent"}
    watch = MilestoneWatch(TASK, desktop)
    assert watch.look(0)
    assert [one.name for one in watch.reached] == ["sent"]
    with pytest.raises(EvaluatorError, match="half written"):
        watch.look(1, is_last=True)


def test_a_branch_goes_on_with_its_parents_milestones_and_other_environments_have_none():
    desktop = Desktop()
    watch = MilestoneWatch(TASK, desktop, [ReachedMilestone(name="opened", turn=0)])
    watch.look(3)
    assert desktop.asked == ["written", "sent"]
    assert not MilestoneWatch(TASK, object()).look(0)
    assert not MilestoneWatch(TASK, desktop).look(-1), "no turn was taken"
