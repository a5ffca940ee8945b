"""Reads the transcripts of a scan in batches and stores what is found; a model is asked from threads."""

from collections.abc import Iterator

from webapp.lib.chat.chat_server import ModelRefused
from webapp.lib.long_work import WorkRefused
from webapp.lib.request_values import BadValue
from webapp.scanners.definition_schemas import check_allowed, read_definition
from webapp.scanners.kinds.contract import Answer, Ask, Asked
from webapp.scanners.models import Finding, Scan
from webapp.scanners.services import scans
from webapp.scanners.transcripts import Paid, read_transcripts


def read_transcripts_of(scan: Scan) -> Iterator[object]:
    """Read until nothing is left; yields after each batch. Raises WorkRefused."""
    definition = read_definition(scan.scanner.definition)
    try:
        check_allowed(definition, scan.team)
        with definition.asking() as ask:
            yield from read_batches(scan, ask, definition.batch)
    except (ModelRefused, BadValue) as refused:
        raise WorkRefused(str(refused)) from refused


def read_batches(scan: Scan, ask: Ask, size: int) -> Iterator[object]:
    """Judge and store one batch after the other. Yields after each."""
    rows = scans.unread(scan.team_id, scan.slice, scan.scanner)
    behind = 0
    while (agreed := scan.max_read - scan.num_read) > 0:
        pks = list(rows.filter(pk__gt=behind).values_list("pk", flat=True)[: min(size, agreed)])
        if not pks:
            break
        behind = pks[-1]
        batch = read_transcripts(pks)
        store(scan, batch, ask(batch))
        yield batch
    scans.end_pass(scan=scan, left=rows.count() if scan.num_read >= scan.max_read else 0)


def store(scan: Scan, batch: list[Paid], answers: list[Answer]) -> None:
    """The findings of a batch, with what its calls took."""
    definition = read_definition(scan.scanner.definition)
    prompt = sum(answer.num_prompt_tokens for answer in answers)
    completion = sum(answer.num_completion_tokens for answer in answers)
    cost = definition.cost(prompt, completion) if isinstance(definition, Asked) else 0.0
    findings = [
        Finding(
            scanner=scan.scanner,
            trajectory_id=paid.transcript.trajectory_id,
            scan=scan,
            outcome=answer.outcome,
            turn=answer.hit.turn if answer.hit else None,
            note=answer.hit.note if answer.hit else "",
        )
        for paid, answer in zip(batch, answers, strict=True)
    ]
    scans.record_findings(
        scan=scan, findings=findings, prompt_tokens=prompt, completion_tokens=completion, cost=cost
    )
