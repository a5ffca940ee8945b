"""Branches: trajectories whose first turns are those of the one that they were continued from."""

from django.db.models import Count, Q

from webapp.trajectories.models import Trajectory, TurnRecord


def copy_parents_turns(branch: Trajectory) -> None:
    """Give a branch the turns that its parent took before it; nothing for any other trajectory.

    They are rows of its own: code that reads, exports or scores a branch needs to know nothing of
    branches, and it stays whole when its parent is deleted.
    """
    group = branch.group
    if group.parent_id is None or not group.branch_turn:
        return
    turns = list(TurnRecord.objects.filter(trajectory_id=group.parent_id, index__lt=group.branch_turn))
    for turn in turns:
        turn.pk, turn.trajectory = None, branch
    TurnRecord.objects.bulk_create(turns)
    branch.last_frame = turns[-1].frame if turns else ""
    counts = branch.turns.aggregate(all=Count("id"), unparsed=Count("id", filter=~Q(parse_error="")))
    branch.num_turns, branch.num_parse_errors = counts["all"], counts["unparsed"]
    before = group.parent.milestones if group.parent else []
    branch.milestones = [one for one in before if one["turn"] < group.branch_turn]
    branch.save(update_fields=["last_frame", "num_turns", "num_parse_errors", "milestones"])
