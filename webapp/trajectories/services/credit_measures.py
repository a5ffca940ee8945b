"""Measured credit: continuations of the current policy from the state before a turn, and after it.

A branch group at turn t measures V(t), the mean reward from there on; turn t was worth V(t + 1) - V(t)
(`queries.turn_credit`). Without a snapshot, desktops get there by doing the recorded actions again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from training.contracts.types import Purpose, Source
from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.queries.branches import BranchRefused, lasted_s, redoable, usable_snapshot
from webapp.trajectories.queries.turn_credit import measured_turns
from webapp.trajectories.services.branches import MAX_SIZE
from webapp.trajectories.services.groups import GroupSpec, create_group


@dataclass(slots=True)
class Measures:
    """What was queued, and what it will take."""

    groups: list[Group] = field(default_factory=list)
    desktop_s: float = 0.0
    left_out: list[int] = field(default_factory=list)
    """Turns whose state the budget had no room for."""


def measure_turns(
    *, trajectory: Trajectory, turns: Iterable[int], size: int, budget_s: float, user: User | None = None
) -> Measures:
    """Queue `size` continuations from the state before and after each turn, within desktop-seconds.

    A state that was measured before is not measured again. Raises BranchRefused, having written nothing.
    """
    if not 1 <= size <= MAX_SIZE:
        raise BranchRefused("size", f"A state has 1 to {MAX_SIZE} continuations, not {size}.")
    if not trajectory.is_final or not (took_s := lasted_s(trajectory)):
        raise BranchRefused("turn", "A trajectory is measured once it has ended.")
    wanted = sorted({state for turn in turns for state in (turn, turn + 1) if state < trajectory.num_turns})
    starts = {state: start_of(trajectory, state) for state in wanted}
    known = measured_turns([trajectory.pk]).get(trajectory.pk, {})
    found = Measures()
    with transaction.atomic():
        for state in (one for one in wanted if one not in known):
            # As long as the whole trajectory took: the turns before are done again, those after it follow.
            if found.desktop_s + size * took_s > budget_s:
                found.left_out.append(state)
                continue
            found.desktop_s += size * took_s
            found.groups.append(_group(trajectory, size, starts[state]))
        if found.groups:
            log_action(
                AuditAction.BRANCHED,
                person=user,
                team=trajectory.team_id,
                kind="trajectory",
                object_id=trajectory.pk,
                turns=[group.branch_turn for group in found.groups],
            )
    return found


def start_of(trajectory: Trajectory, state: int) -> dict[str, Any]:
    """Of a GroupSpec: its own snapshot where one can be woken, else its turns to do again.

    Raises BranchRefused.
    """
    redoable(trajectory, state)
    try:
        snapshot = usable_snapshot(trajectory, state)
    except BranchRefused:
        return {"redone": (trajectory, state)}
    is_own = snapshot.trajectory_id == trajectory.pk
    return {"snapshot": snapshot} if is_own else {"redone": (trajectory, state)}


def _group(trajectory: Trajectory, size: int, start: dict[str, Any]) -> Group:
    experiment = trajectory.experiment
    return create_group(
        request=GroupSpec(
            task=trajectory.task,
            size=size,
            purpose=Purpose.BRANCH,
            source=Source.POLICY,
            step=trajectory.step,
            temperature=trajectory.group.temperature or 1.0,
            policy_version=experiment.policy_version if experiment else None,
            **start,
        ),
        team_id=trajectory.team_id,
        experiment=experiment,
    )
