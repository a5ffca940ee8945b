"""What the checks beside an entry say of a success's reward."""

import pytest

from testing.factories import make_replay_entry, make_trajectory
from webapp.replay.automatic_checks import checks_of, reward_check

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("reward", "penalties", "said"),
    [
        (0.97, {"turns.v1": -0.03}, None),  # every success pays a little for its turns
        (1.0, {}, None),
        (0.7, {"turns.v1": -0.05, "repeats.v1": -0.25}, "Penalised: turns, repeats"),
        (-0.1, {"repeats.v1": -1.1}, "Solved, but its reward is -0.10"),
    ],
)
def test_only_a_success_that_lost_much_is_called_penalised(reward, penalties, said):
    terms = [{"name": "task_score.v1", "contribution": 1.0}]
    terms += [{"name": name, "contribution": value} for name, value in penalties.items()]
    entry = make_replay_entry(trajectory=make_trajectory(reward=reward, score=1.0, terms=terms))
    found = reward_check(entry)
    assert (found.text if found else None) == said


@pytest.mark.parametrize(("status", "names"), [("terminated", []), ("truncated", ["end"])])
def test_a_success_that_a_limit_ended_is_marked(status: str, names: list[str]) -> None:
    entry = make_replay_entry(trajectory=make_trajectory(reward=1.0, score=1.0, status=status))
    assert [check.name for check in checks_of(entry, None) if check.tone != "good"] == names
