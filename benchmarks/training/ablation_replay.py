"""Fills the replay buffer of the installation that the environment names: oracle successes, accepted.

python -m benchmarks.training.ablation_replay SEED COUNT LIMIT_S    prints how many entries were accepted
"""

from __future__ import annotations

import sys
import time

import django

FAMILIES = ("menu", "note", "colour")
TASK_SET = "first-desk"


def main(seed: int, count: int, limit_s: float) -> int:
    """Demonstrate the first `count` tasks of the run's order and accept them, as a person would."""
    django.setup()
    from training.contracts.types import Purpose, Source, Task
    from training.rollouts.task_order import TaskOrder
    from webapp.accounts.models import Membership
    from webapp.experiments.models import TaskRecord
    from webapp.replay.models import ReplayEntry
    from webapp.replay.services.bulk_labels import label_many
    from webapp.replay.services.inbox import offer_to_inbox
    from webapp.trajectories.models import Trajectory
    from webapp.trajectories.services.groups import GroupSpec, create_group

    member = Membership.objects.select_related("team", "user").order_by("pk")[0]
    rows = TaskRecord.objects.filter(task_set__name=TASK_SET, family__in=FAMILIES, split="train")
    records = {row.task_id: row for row in rows}
    tasks = [Task.model_validate(row.spec) for row in rows.order_by("task_id")]
    names = {task.task_id for task in TaskOrder(tasks, seed).take(0, count)}
    for name in sorted(names):
        request = GroupSpec(task=records[name], size=1, purpose=Purpose.DEMONSTRATION, source=Source.ORACLE)
        create_group(request=request, team_id=member.team_id)
    demonstrations = Trajectory.objects.filter(purpose=Purpose.DEMONSTRATION)
    waiting = demonstrations.filter(ended_at=None)
    deadline = time.monotonic() + limit_s
    while waiting.exists() and time.monotonic() < deadline:
        time.sleep(0.5)
    for row in demonstrations.filter(score=1.0):
        offer_to_inbox(trajectory=row)
    entries = ReplayEntry.objects.filter(team=member.team, verdict="inbox")
    print(label_many(entries=entries, user=member.user, verdict="accepted").changed)
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
