"""How a trajectory came out, for templates: the score gives the colour, not who ended it."""

from typing import Any

from django import template

from training.contracts.outcome import OUTCOME_LABELS, Outcome, outcome_of
from training.contracts.types import TrajectoryStatus
from webapp.ui.templatetags.deskhand import tone

register = template.Library()

OUTCOME_TONES = {
    Outcome.SOLVED: "good",
    Outcome.SOLVED_AT_LIMIT: "warning",
    Outcome.FAILED: "bad",
    Outcome.ERRORED: "neutral",
    Outcome.CANCELLED: "neutral",
}


def _outcome(row: Any) -> Outcome | None:
    """Of a row, or of what a report keeps of one."""
    return outcome_of(TrajectoryStatus(row["status"]), row["score"]) if isinstance(row, dict) else row.outcome


@register.filter
def outcome_tone(row: Any) -> str:
    """Colour family of a trajectory: by its outcome, while it runs by its status."""
    outcome = _outcome(row)
    if outcome is not None:
        return OUTCOME_TONES[outcome]
    status = row["status"] if isinstance(row, dict) else row.status
    return "neutral" if TrajectoryStatus(status).is_final() else tone(status)


@register.filter
def outcome_label(row: Any) -> str:
    """Its outcome in words, while it runs its status."""
    outcome = _outcome(row)
    status = row["status"] if isinstance(row, dict) else row.status
    return OUTCOME_LABELS[outcome].capitalize() if outcome else str(status).capitalize()


@register.inclusion_tag("trajectories/parts/outcome_badge.html")
def outcome_badge(row: Any) -> dict[str, Any]:
    """A dot and the outcome in words, behind it how it ended where that is not said yet."""
    outcome = _outcome(row)
    status, score = (row["status"], row["score"]) if isinstance(row, dict) else (row.status, row.score)
    says_how = outcome is Outcome.FAILED
    return {
        "tone": outcome_tone(row),
        "label": outcome_label(row),
        "outcome": outcome,
        "status": str(status),
        "score": score,
        "ended": str(status) if says_how else "",
    }


@register.filter
def turn_share(term: dict[str, Any]) -> str:
    """What is between weight times mark and the contribution of a turn: " / 6 turns", or a factor."""
    product, contribution = float(term["weight"]) * float(term["value"]), float(term["contribution"])
    if not product or not contribution or abs(product - contribution) < 1e-9:
        return ""
    parts = product / contribution
    if parts > 1 and abs(parts - round(parts)) < 1e-6:
        return f" / {round(parts)} turns"
    return f" × {contribution / product:.3g}"
