"""Automatic checks shown beside an entry: near duplicates, stuck screens, old policies, odd rewards."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from webapp.replay.models import ReplayEntry
from webapp.trajectories.models import TurnRecord
from webapp.trajectories.turn_display import action_signature

MAX_STILL = 3
"""Turns on one unchanged screen that look stuck."""
OLD_POLICY = 10
"""Policy versions after which an entry is marked as old."""


@dataclass(frozen=True)
class Check:
    """One finding: `tone` is good, warning or bad."""

    name: str
    tone: str
    text: str
    entry_id: int | None = None
    """An entry that the text speaks of."""


def signature_of(task_id: int, turns: Sequence[TurnRecord]) -> str:
    """Digest of what was done, with points on a coarse grid and repeats of one action merged."""
    actions = [action_signature(turn.action) for turn in turns]
    merged = [action for action, _ in groupby(actions)]
    return hashlib.sha256(f"{task_id}|{'|'.join(merged)}".encode()).hexdigest()


def longest_still_run(turns: Sequence[TurnRecord]) -> int:
    """Most turns in a row that showed the same frame; 0 without turns."""
    frames = [turn.frame for turn in turns]
    return max((len(list(run)) for frame, run in groupby(frames) if frame), default=0)


def checks_of(entry: ReplayEntry, first_of_signature: int | None) -> list[Check]:
    """The findings about `entry`, the worrying ones first. Needs its trajectory and experiment loaded."""
    found = [
        duplicate_check(entry, first_of_signature),
        still_check(entry),
        age_check(entry),
        reward_check(entry),
        parse_check(entry),
    ]
    order = {"bad": 0, "warning": 1, "good": 2}
    return sorted(filter(None, found), key=lambda check: order[check.tone])


def duplicate_check(entry: ReplayEntry, first_of_signature: int | None) -> Check:
    """Is there an older entry of the task with the same actions?"""
    if first_of_signature is None or first_of_signature >= entry.pk:
        return Check("duplicate", "good", "No older entry has the same actions")
    return Check("duplicate", "warning", f"Same actions as entry {first_of_signature}", first_of_signature)


def still_check(entry: ReplayEntry) -> Check | None:
    """Did the screen stand still for long?"""
    if entry.num_still < MAX_STILL:
        return None
    return Check("still", "warning", f"{entry.num_still} turns in a row on the same screen")


def policy_age(entry: ReplayEntry) -> int | None:
    """Versions that the recording experiment went on after the entry; None without a policy."""
    trajectory = entry.trajectory
    if trajectory.policy_version is None or trajectory.experiment is None:
        return None
    return max(0, trajectory.experiment.policy_version - trajectory.policy_version)


def age_check(entry: ReplayEntry) -> Check:
    """How far has the policy moved since?"""
    age = policy_age(entry)
    if age is None:
        return Check("age", "good", f"{entry.trajectory.source.capitalize()} actions, no policy to age")
    if entry.trajectory.source != "policy":
        return Check("age", "good", f"{entry.trajectory.source.capitalize()} actions: enters as likelihood")
    text = f"Policy v{entry.trajectory.policy_version}, {age} version{'' if age == 1 else 's'} old"
    return Check("age", "warning" if age > OLD_POLICY else "good", text)


def reward_check(entry: ReplayEntry) -> Check | None:
    """Does the reward contradict the score, as a hacked or penalised one would?"""
    trajectory = entry.trajectory
    if trajectory.reward is None or trajectory.score is None:
        return None
    if trajectory.reward <= 0:
        return Check("reward", "bad", f"Solved, but its reward is {trajectory.reward:.2f}")
    losses = [term for term in trajectory.terms if float(term.get("contribution", 0.0)) < 0]
    if losses:
        names = ", ".join(str(term["name"]).rpartition(".v")[0] or str(term["name"]) for term in losses)
        return Check("reward", "warning", f"Penalised: {names}")
    return None


def parse_check(entry: ReplayEntry) -> Check | None:
    """Were there completions that meant nothing?"""
    number = entry.trajectory.num_parse_errors
    if not number:
        return None
    return Check("parse", "warning", f"{number} completion{'' if number == 1 else 's'} could not be parsed")
