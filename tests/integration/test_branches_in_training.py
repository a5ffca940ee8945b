"""`credit: branches` in the whole product: desktops do turns again, and the trainer learns from them."""

import pytest

from testing.experiment_runs import follow, launch, settings
from testing.private_installation import Instance
from testing.watch_installation import rows

pytestmark = [pytest.mark.desktop, pytest.mark.slow, pytest.mark.timeout(1800)]

VALUES: dict[str, object] = {
    "algorithm.credit": "branches",
    "algorithm.least_visits": 128,  # no screen is shared by as many, so that states are measured
    "algorithm.branch_size": 2,
    "algorithm.branch_seconds": 600,
    "algorithm.num_steps": 2,
    "algorithm.groups_per_step": 2,
    "algorithm.group_size": 4,
    "evaluation.num_tasks": 0,
    "tasks.families": ["menu", "note"],
}
BRANCHES = """
SELECT t.id, t.status, t.error_kind, t.advantage, g.attempt, g.branch_turn
FROM trajectories_trajectory t JOIN trajectories_group g ON g.id = t.group_id WHERE t.purpose = 'branch'
"""
OTHER_TURNS = """
SELECT COUNT(*) FROM trajectories_turnrecord own
JOIN trajectories_trajectory t ON t.id = own.trajectory_id
JOIN trajectories_group g ON g.id = t.group_id
LEFT JOIN trajectories_turnrecord theirs
  ON theirs.trajectory_id = g.parent_id AND theirs."index" = own."index"
WHERE t.purpose = 'branch' AND own."index" < g.branch_turn AND theirs.frame <> own.frame
"""


def test_continuations_are_measured_on_real_desktops_and_meet_the_optimiser() -> None:
    names = ("branches/states", "branches/continuations", "policy/logprob_gap", "optimiser/grad_norm")
    with Instance(without=["web"], slots=4, env_workers=1, env={"CUDA_VISIBLE_DEVICES": ""}) as deskhand:
        number = launch(deskhand, "--preset", "first-desk", *settings(VALUES))
        found = follow(deskhand, number, 1500, *names)
        branches, (other,) = rows(deskhand, BRANCHES), rows(deskhand, OTHER_TURNS)
    assert found["status"] == "finished", found
    metrics = {name: dict(found["metrics"][name]) for name in names}
    assert metrics["branches/states"], "no group differed in two steps"
    scored = [row for row in branches if row[1] in ("terminated", "truncated")]
    assert len(scored) == sum(metrics["branches/continuations"].values())
    assert {kind for _, _, kind, *_ in branches} <= {"", "not_reproduced"}
    assert {attempt for *_, attempt, _ in branches} == {1}
    assert min(turn for *_, turn in branches) >= 1
    assert other == (0,), "turns before a branch are its parent's"
    assert any(advantage for _, _, _, advantage, *_ in scored), "the trainer said what they were worth"
    assert max(metrics["policy/logprob_gap"].values()) < 1e-4
