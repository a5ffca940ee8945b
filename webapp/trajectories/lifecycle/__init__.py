"""Writes about groups, trajectories and turns.

Invariants: a trajectory is claimed by exactly one worker; an errored trajectory is never
scored, its place in the group is re-run up to `retries` times; a trajectory in which a person acted
leaves its group, and its place is run again; a group finishes once, when every place is final, and
gets the next `finished_seq` of its experiment.
"""

from webapp.trajectories.lifecycle.announcements import announce, stream_of
from webapp.trajectories.lifecycle.group_places import has_left_its_group, members_that_count
from webapp.trajectories.lifecycle.groups import GroupSpec, cancel_group, cancel_groups_of, create_group
from webapp.trajectories.lifecycle.record_advantages import record_member_updates
from webapp.trajectories.lifecycle.status_changes import (
    HEARTBEAT_TIMEOUT,
    RUNNING,
    beat_trajectories,
    claim_trajectory,
    end_trajectory,
    lose_stale_trajectories,
    move_trajectory,
    take_out_of_group,
)
from webapp.trajectories.lifecycle.turns import (
    close_turn,
    open_turn,
    record_checks,
    record_final_frame,
    record_fingerprint,
    record_milestones,
    record_turn_terms,
)

__all__ = [
    "HEARTBEAT_TIMEOUT",
    "RUNNING",
    "GroupSpec",
    "announce",
    "beat_trajectories",
    "cancel_group",
    "cancel_groups_of",
    "claim_trajectory",
    "close_turn",
    "create_group",
    "end_trajectory",
    "has_left_its_group",
    "lose_stale_trajectories",
    "members_that_count",
    "move_trajectory",
    "open_turn",
    "record_checks",
    "record_final_frame",
    "record_member_updates",
    "record_fingerprint",
    "record_milestones",
    "record_turn_terms",
    "stream_of",
    "take_out_of_group",
]
