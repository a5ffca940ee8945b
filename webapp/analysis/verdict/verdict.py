"""The verdict of a run: outcome, since when, by which evidence, what is odd about it, and one remedy."""

from collections.abc import Sequence
from dataclasses import dataclass

from training.contracts.config import ExperimentConfig
from training.statistics.paired_statistics import SIGNIFICANT_P
from webapp.analysis.alarms.onset import Onset, fall_of_success, onset_at, onset_of_alarm
from webapp.analysis.alarms.remedies import (
    OnsetFacts,
    Remedy,
    changes_for,
    changes_in,
    checkpoint_before,
    set_back,
    slower,
)
from webapp.analysis.alarms.root_alarms import causes_first, likely_cause
from webapp.analysis.alarms.suspect_settings import Suspect, suspect_of
from webapp.analysis.evaluations.graded_scores import ScoreChange
from webapp.analysis.evaluations.success_pairs import (
    SuccessLine,
    SuccessPair,
    pairs_of,
    success_lines,
)
from webapp.analysis.verdict.fallen_families import FallenFamily, fallen_families
from webapp.analysis.verdict.outcomes import RunOutcome, outcome_of_run
from webapp.experiments.models import AlarmRecord, AlarmStatus, Experiment, ExperimentStatus

FELL = (RunOutcome.WORSE, RunOutcome.COLLAPSED)
STUCK = (RunOutcome.FLAT, RunOutcome.UNKNOWN, RunOutcome.RUNNING)
MAY_HAVE_FALLEN = (*STUCK, RunOutcome.PARTLY)
"""Outcomes that a collapse of the rollouts outweighs."""
SIGNS = {
    RunOutcome.LEARNED: 1,
    RunOutcome.SOLVED: 1,
    RunOutcome.PARTLY: 1,
    RunOutcome.WORSE: -1,
    RunOutcome.COLLAPSED: -1,
}
"""Outcomes that begin with an evaluation, and whether success rose by then."""
UNSOLVED_BY_CHANCE = 0.01
"""Probability above which failures in every try are silent about a family."""
ENDED_REWARDS = {"first-desk.v1": "first-desk.v2", "windows-keyboard.v1": "windows-keyboard.v2"}
"""Reward preset -> the same with a score that counts only where the agent ended the trajectory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of one run."""

    outcome: RunOutcome
    is_final: bool
    line: SuccessLine | None
    """The success that shows it, before and after; None without two evaluations."""
    since_step: int | None
    """The first step at which it showed and stayed; None where nothing says."""
    onset: Onset | None
    """Of the trouble, for outcomes with one."""
    alarm: AlarmRecord | None
    """At the root of it, of those that stand at the end."""
    suspect: Suspect | None
    unsolved_families: tuple[str, ...] = ()
    """Of which no task was solved at the start, while others were."""
    fallen_families: Sequence[FallenFamily] = ()

    @property
    def scores(self) -> ScoreChange | None:
        """Partial scores, where they show the outcome and full ones do not."""
        line = self.line
        if line is None or line.scores is None or self.outcome not in (*FELL, RunOutcome.PARTLY):
            return None
        is_chance = line.p is not None and line.p > SIGNIFICANT_P
        return line.scores if is_chance and line.scores.moved == SIGNS[self.outcome] else None


def verdict_of(experiment: Experiment) -> Verdict:
    """By its evaluations, series, alarms and settings."""
    is_final = ExperimentStatus(experiment.status).is_final()
    pairs = pairs_of(experiment.evaluations.all())
    before = next((pair for pair in pairs if pair.either.name == "before"), None)
    lines = success_lines(before, pairs[-1]) if before and pairs[-1] is not before else []
    outcome = outcome_of_run(lines, is_final=is_final)
    fallen_at = fall_of_success(experiment) if outcome in (*FELL, *MAY_HAVE_FALLEN) else None
    if fallen_at is not None and outcome in MAY_HAVE_FALLEN:
        outcome = RunOutcome.COLLAPSED
    alarm = _root_alarm(experiment) if outcome in STUCK else None
    onset = onset_of_alarm(alarm) if alarm else onset_at(experiment, fallen_at) if fallen_at else None
    is_in_doubt = outcome in (*FELL, *STUCK, RunOutcome.BABBLES, RunOutcome.SHARPENED)
    phase = onset.is_of_the_start if onset else False if outcome in FELL else None
    return Verdict(
        outcome=outcome,
        is_final=is_final,
        line=_telling(lines, outcome),
        since_step=fallen_at or _since(pairs, outcome),
        onset=onset,
        alarm=alarm,
        suspect=suspect_of(experiment, before_updates=phase) if is_in_doubt else None,
        unsolved_families=_unsolved(before) if outcome in STUCK else (),
        fallen_families=fallen_families(experiment, before, pairs[-1]) if before and lines else (),
    )


def changes_of_run(experiment: Experiment, verdict: Verdict) -> dict[str, str]:
    """The one remedy that follows from it, as knob -> text; empty where nothing is to be mended or known."""
    config = experiment.settings
    if verdict.outcome in STUCK and verdict.alarm and verdict.onset:
        return changes_for(verdict.alarm, verdict.onset)
    if verdict.outcome in (RunOutcome.RUNNING, RunOutcome.UNKNOWN):
        return {}  # nothing is known to be wrong yet
    if verdict.suspect:
        return set_back(experiment, verdict.suspect)
    if verdict.outcome in FELL:
        return changes_in(config, slower(config, OnsetFacts(is_of_the_start=False)))
    return changes_in(config, _end_it(config)) if verdict.outcome is RunOutcome.BABBLES else {}


def remedy_of_run(experiment: Experiment, verdict: Verdict) -> Remedy:
    """With the checkpoint from before a fall; what was wrong from the start begins anew."""
    start = None
    if verdict.outcome in FELL and verdict.since_step:
        start = checkpoint_before(experiment, verdict.since_step)
    return Remedy(changes=changes_of_run(experiment, verdict), checkpoint=start)


def note_of_run(experiment: Experiment, verdict: Verdict) -> str:
    """Of the clone, why there is one."""
    since = f" since step {verdict.since_step}" if verdict.since_step else ""
    return f"Remedy of “{verdict.outcome.label}”{since} of #{experiment.pk}"


def _end_it(config: ExperimentConfig) -> dict[str, object]:
    """No credit for turns without an action, and a score only for what the agent ended."""
    preset = ENDED_REWARDS.get(config.rewards.preset)
    changes: dict[str, object] = {"algorithm.void_turns": "no_credit"}
    return changes | ({"rewards.preset": preset} if preset else {})


def _root_alarm(experiment: Experiment) -> AlarmRecord | None:
    """The first cause among those that were not cleared."""
    standing = [alarm for alarm in experiment.alarms.all() if alarm.status != AlarmStatus.CLEARED]
    if not standing:
        return None
    first = causes_first(standing)[0]
    return likely_cause(first, standing) or first


def _telling(lines: Sequence[SuccessLine], outcome: RunOutcome) -> SuccessLine | None:
    """Greedy success, unless only the sampled one shows the outcome."""
    greedy = [line for line in lines if line.newest.is_greedy]
    sampled = [line for line in lines if not line.newest.is_greedy]
    if outcome is RunOutcome.SHARPENED:
        greedy = []
    if outcome in FELL:
        greedy = [line for line in greedy if (line.gain or 0) < 0 or (line.scores and line.scores.moved < 0)]
    return next(iter(greedy or sampled), None)


def _since(pairs: Sequence[SuccessPair], outcome: RunOutcome) -> int | None:
    """The first step whose evaluation already showed it, as all later ones did."""
    if outcome not in SIGNS:
        return None
    since, kind = None, "greedy" if pairs[0].greedy and pairs[-1].greedy else "sampled"
    for pair in reversed(pairs[1:]):
        one, first = getattr(pair, kind), getattr(pairs[0], kind)
        if one is None or first is None or one.p_of_change is None or one.p_of_change > SIGNIFICANT_P:
            break
        if (one.shown.value - first.shown.value) * SIGNS[outcome] <= 0:
            break
        since = one.step
    return since


def _unsolved(before: SuccessPair | None) -> tuple[str, ...]:
    """Families without a success before the first step, unless that is chance at the others' success."""
    won: dict[str, int] = {}
    tried: dict[str, int] = {}
    for one in before.both if before else ():
        for name, (number, count, *_) in one.per_family.items():
            won[name] = won.get(name, 0) + number
            tried[name] = tried.get(name, 0) + count
    unsolved = sorted(name for name, number in won.items() if not number)
    num_unsolved = sum(tried[name] for name in unsolved)
    num_others = sum(tried.values()) - num_unsolved
    if not num_others or (1 - sum(won.values()) / num_others) ** num_unsolved > UNSOLVED_BY_CHANCE:
        return ()
    return tuple(unsolved)
