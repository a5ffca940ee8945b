"""The verdict in words, the same on every page, in the API and in notifications."""

from typing import Any

from webapp.analysis.alarms.remedies import Remedy
from webapp.analysis.templatetags.changes import p_value, points_text
from webapp.analysis.verdict.fallen_families import FallenFamily
from webapp.analysis.verdict.outcomes import RunOutcome
from webapp.analysis.verdict.verdict import Verdict, changes_of_run, verdict_of
from webapp.experiments.models import Experiment
from webapp.ui.templatetags.deskhand import percent


def headline(verdict: Verdict) -> str:
    """Outcome and by when: "Collapsed by step 2"; of a run that goes on "So far: learned".

    Not since: its first sign may be the evaluation after the last step.
    """
    label = verdict.outcome.label
    if not verdict.is_final and verdict.outcome is not RunOutcome.RUNNING:
        label = f"So far: {label[:1].lower()}{label[1:]}"
    return f"{label} by step {verdict.since_step}" if verdict.since_step else label


def evidence(verdict: Verdict) -> str:
    """Success before and after with its chance; "" without two evaluations."""
    line = verdict.line
    if line is None or line.before is None or line.after is None:
        return ""
    shares = f"{percent(line.before.value)} before, {percent(line.after.value)} after"
    if scores := verdict.scores:
        return (
            f"{line.kind.lower()} mean score {percent(scores.before)} before, {percent(scores.after)} after "
            f"({points_text(scores.gain)}, {p_value(scores.p)}, n = {line.num_samples}); "
            f"full scores {shares}"
        )
    chance = f", {p_value(line.p)}" if line.p is not None else ""
    text = f"{line.kind.lower()} success {shares} ({points_text(line.gain)}{chance}, n = {line.num_samples})"
    return f"{text}; {line.num_at_limit} more only at a limit" if line.num_at_limit else text


def oddities(verdict: Verdict) -> list[str]:
    """What a person would look at first, as sentences."""
    found = [verdict.suspect.sentence] if verdict.suspect else []
    if verdict.line and verdict.line.differences:
        found.append(f"Before and after were measured otherwise: {', '.join(verdict.line.differences)}.")
    if verdict.unsolved_families:
        names = ", ".join(verdict.unsolved_families)
        found.append(f"No task of {names} was solved before the first step: the policy does not know them.")
    return found + [_of_fallen(family) for family in verdict.fallen_families]


def _of_fallen(family: FallenFamily) -> str:
    more = f"; {family.num_at_limit} more only at a limit" if family.num_at_limit else ""
    shares = f"{percent(family.before)} to {percent(family.after)}"
    return f"Held-out tasks of {family.name} were lost ({family.kind} {shares}{more})."


def sentence(verdict: Verdict) -> str:
    """All of it as plain text."""
    shown = evidence(verdict)
    first = f"{headline(verdict)}: {shown}." if shown else f"{headline(verdict)}."
    return " ".join([first, *oddities(verdict)])


def described(experiment: Experiment) -> dict[str, Any] | None:
    """Outcome, since when, sentence and remedy as plain values; None of what cannot have one yet."""
    if not has_verdict(experiment):
        return None
    found = verdict_of(experiment)
    return {
        "outcome": found.outcome,
        "since_step": found.since_step,
        "text": sentence(found),
        "remedy": changes_of_run(experiment, found),
    }


def verdict_context(experiment: Experiment) -> dict[str, Any]:
    """The same for its page."""
    if not has_verdict(experiment):
        return {"verdict": None}
    found = verdict_of(experiment)
    remedy = Remedy(changes=changes_of_run(experiment, found), checkpoint=None)
    return {
        "verdict": found,
        "headline": headline(found),
        "shown_by": evidence(found),
        "oddities": oddities(found),
        "remedy_changes": remedy.knob_changes(experiment.settings),
    }


def has_verdict(experiment: Experiment) -> bool:
    """False of experiments that only measure, and before the first start."""
    return experiment.started_at is not None and not experiment.settings.evaluation.only
