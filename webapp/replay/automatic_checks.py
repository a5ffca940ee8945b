"""Automatic checks shown beside an entry: near duplicates, stuck screens, other models, odd rewards."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from training.contracts.outcome import Outcome
from webapp.replay.filters import MAX_STILL
from webapp.replay.fit_for_experiments import Fit
from webapp.replay.models import ReplayEntry
from webapp.trajectories.action_words import actions_of, turn_signature
from webapp.trajectories.models import TurnRecord

MUCH_LOST = 0.25
"""Share of what a success earned; penalties that take less are ordinary."""


@dataclass(frozen=True)
class Check:
    """One finding: `tone` is good, warning or bad."""

    name: str
    tone: str
    text: str
    cluster: int | None = None
    """A cluster that the text speaks of."""


def signature_of(task_id: int | str, turns: Sequence[TurnRecord]) -> str:
    """Digest of what was done, with points on a coarse grid and repeats of one action merged."""
    actions = [turn_signature(actions_of(turn)) for turn in turns]
    merged = [action for action, _ in groupby(actions)]
    return hashlib.sha256(f"{task_id}|{'|'.join(merged)}".encode()).hexdigest()


def longest_still_run(turns: Sequence[TurnRecord]) -> int:
    """Most turns in a row that showed the same frame; 0 without turns."""
    frames = [turn.frame for turn in turns]
    return max((len(list(run)) for frame, run in groupby(frames) if frame), default=0)


def checks_of(entry: ReplayEntry, fit: Fit | None) -> list[Check]:
    """The findings about `entry`, the worrying ones first. Needs its trajectory and experiment loaded."""
    found = [
        duplicate_check(entry),
        still_check(entry),
        fit_check(fit),
        reward_check(entry),
        end_check(entry),
        parse_check(entry),
    ]
    order = {"bad": 0, "warning": 1, "good": 2}
    return sorted(filter(None, found), key=lambda check: order[check.tone])


def duplicate_check(entry: ReplayEntry) -> Check | None:
    """Has it gathered around an older entry? Nothing is known until it was compared."""
    if entry.cluster is None:
        return None
    if entry.cluster >= entry.pk:
        return Check("duplicate", "good", "No older entry is near-identical")
    return Check("duplicate", "warning", f"Near-identical to entry {entry.cluster}", entry.cluster)


def still_check(entry: ReplayEntry) -> Check | None:
    """Did the screen stand still for long?"""
    if entry.num_still < MAX_STILL:
        return None
    return Check("still", "warning", f"{entry.num_still} turns in a row on the same screen")


def fit_check(fit: Fit | None) -> Check | None:
    """What would the experiment make of it, and how far are their policies apart?"""
    if fit is None:
        return None
    age = f"; policy age {fit.age}" if fit.age else ""
    return Check("fit", fit.tone, f"In #{fit.experiment.pk} {fit.experiment.name}: {fit.form}{age}")


def reward_check(entry: ReplayEntry) -> Check | None:
    """Does the reward contradict the score, as a hacked or penalised one would?"""
    trajectory = entry.trajectory
    if trajectory.reward is None or trajectory.score is None:
        return None
    if trajectory.reward <= 0:
        return Check("reward", "bad", f"Solved, but its reward is {trajectory.reward:.2f}")
    losses = [term for term in trajectory.terms if float(term.get("contribution", 0.0)) < 0]
    lost = -sum(float(term["contribution"]) for term in losses)
    # Nearly every success pays a little for its turns: that alone is no reason to look twice.
    if losses and lost >= MUCH_LOST * (trajectory.reward + lost):
        names = ", ".join(str(term["name"]).rpartition(".v")[0] or str(term["name"]) for term in losses)
        return Check("reward", "warning", f"Penalised: {names}")
    return None


def end_check(entry: ReplayEntry) -> Check | None:
    """Did the agent know that it was done?"""
    if entry.trajectory.outcome is not Outcome.SOLVED_AT_LIMIT:
        return None
    return Check("end", "warning", "A limit ended it: it teaches to go on after the task is done")


def parse_check(entry: ReplayEntry) -> Check | None:
    """Would turns be trained on that did nothing?"""
    if entry.has_bad_turns:
        return Check("parse", "bad", "Unparsable or refused turns: accepted without them, or not")
    number = entry.trajectory.num_parse_errors
    if not number:
        return None
    words = f"{number} completion{'' if number == 1 else 's'} could not be parsed; left out"
    return Check("parse", "good", words)
