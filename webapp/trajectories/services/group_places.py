"""The places of a group: who counts, who is run again, and when the group is finished."""

from statistics import fmean, stdev
from typing import Any

from django.db.models import F, QuerySet
from django.utils import timezone

from training.contracts.types import Purpose, Source
from webapp.experiments.queries.streams import experiment_stream
from webapp.live.event_publishing import publish
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.queries.turn_credit import credit_of, mistake_of
from webapp.trajectories.services.branch_turns import copy_parents_turns
from webapp.trajectories.services.verifications import note_verification

LASTING_ERRORS = ("snapshot_gone", "host_gone")
"""Kinds of errors that a second try meets again."""


def has_left_its_group(trajectory: Trajectory) -> bool:
    """True when a person took the trajectory over: another one has its place."""
    return trajectory.source == Source.HUMAN and trajectory.group.source != Source.HUMAN


def members_that_count(group: Group) -> QuerySet[Trajectory]:
    """All tries of a group's places, without those that a person took over."""
    members = group.trajectories.all()
    return members if group.source == Source.HUMAN else members.exclude(source=Source.HUMAN)


def rerun_place(trajectory: Trajectory) -> bool:
    """Queue the same place again; False when its retries are used up."""
    group = trajectory.group
    if group.is_cancelled or trajectory.tries >= trajectory.desktop_config.retries:
        return False
    if trajectory.error_kind in LASTING_ERRORS:
        return False
    if trajectory.source == Source.HUMAN:
        return False  # the person who demonstrated is not waiting for another desktop
    queue_place(trajectory, tries=trajectory.tries + 1)
    return True


def queue_place(trajectory: Trajectory, *, tries: int) -> None:
    again = Trajectory.objects.create(
        team_id=trajectory.team_id,
        experiment=trajectory.experiment,
        group_id=trajectory.group_id,
        task_id=trajectory.task_id,
        family=trajectory.family,
        purpose=trajectory.purpose,
        source=trajectory.group.source,
        member=trajectory.member,
        tries=tries,
        retry_of=trajectory,
        step=trajectory.step,
        policy_version=trajectory.policy_version,
        host=trajectory.host,
    )
    copy_parents_turns(again)


def note_mistakes(group: Group) -> None:
    """Keep the decisive mistake of each member for lists and scanners."""
    for key, stretches in credit_of(group).items():
        if (turn := mistake_of(stretches)) is not None:
            Trajectory.objects.filter(pk=key).update(mistake_turn=turn)


def count_place(trajectory: Trajectory, *, scored: bool) -> None:
    """One place of the group is final; the last one finishes the group."""
    Group.objects.filter(pk=trajectory.group_id).update(
        num_final=F("num_final") + 1, num_scored=F("num_scored") + int(scored)
    )
    group = Group.objects.get(pk=trajectory.group_id)
    counted = members_that_count(group)
    rewards = [reward for reward in counted.values_list("reward", flat=True) if reward is not None]
    values: dict[str, Any] = {
        "reward_mean": fmean(rewards) if rewards else None,
        "reward_std": stdev(rewards) if len(rewards) > 1 else None,
    }
    finished = group.num_final >= group.size
    if finished:
        values["finished_at"] = timezone.now()
    Group.objects.filter(pk=group.pk).update(**values)
    if finished and values["reward_std"]:
        note_mistakes(group)
    if finished and group.purpose == Purpose.VERIFICATION and not group.is_cancelled:
        note_verification(group)
    if not group.experiment_id:
        return
    seq = publish(
        experiment_stream(group.experiment_id),
        "group.finished" if finished else "group.updated",
        {"group": group.pk, "num_final": group.num_final, "num_scored": group.num_scored},
    )
    if finished:
        Group.objects.filter(pk=group.pk).update(finished_seq=seq)
