"""What a scan would read and cost, before it runs."""

from dataclasses import dataclass

from webapp.accounts.models import Team
from webapp.scanners.definition_schemas import check_allowed
from webapp.scanners.kinds.contract import Asked
from webapp.scanners.queries.scanners import Known
from webapp.scanners.services.scans import unread
from webapp.scanners.transcripts import read_transcripts

SAMPLE = 20
"""Newest trajectories whose transcripts are measured; the others are taken to be as long on average."""


@dataclass(frozen=True, slots=True)
class Preview:
    """Of one scanner over one slice."""

    num_unread: int
    num_calls: int
    """0 for patterns."""
    prompt_tokens: int
    """Estimated, of all calls."""
    completion_tokens: int
    """At most, of all calls."""
    cost: float | None
    """At most, at the definition's prices; None without prices."""
    num_measured: int


def preview(team: Team, known: Known, slice_key: str) -> Preview:
    """Three queries; nothing is sent anywhere. Raises BadValue, also where the model may not be asked."""
    check_allowed(known.definition, team)
    rows = unread(team.pk, slice_key, known.row)
    num = rows.count()
    question = known.definition
    if not isinstance(question, Asked) or not num:
        return Preview(num, 0, 0, 0, None, 0)
    newest = list(rows.order_by("-pk").values_list("pk", flat=True)[:SAMPLE])
    sizes = [question.num_prompt_tokens(paid.transcript) for paid in read_transcripts(newest)]
    prompt = round(num * sum(sizes) / len(sizes))
    completion = num * question.most_tokens()
    cost = question.cost(prompt, completion) or None
    return Preview(num, num, prompt, completion, cost, len(sizes))
