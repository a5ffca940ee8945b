"""Reads the transcripts of a scan in batches and stores what is found; a model is asked from threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from webapp.lib.chat.chat_server import ChatServer, ModelRefused
from webapp.lib.long_work import WorkRefused
from webapp.lib.request_values import BadValue
from webapp.scanners.definition_schemas import Definition, ModelQuestion, check_allowed, read_definition
from webapp.scanners.model_question import Answer
from webapp.scanners.model_question import ask as ask_model
from webapp.scanners.models import Finding, Outcome, Scan
from webapp.scanners.patterns import find
from webapp.scanners.services import scans
from webapp.scanners.shipped_rules import Hit
from webapp.scanners.transcripts import Paid, read_transcripts

BATCH = 100
MODEL_BATCH = 8
"""Also the calls that run at once: what is asked when a process dies is asked again."""
Ask = Callable[[list[Paid]], list[Answer]]


def read_transcripts_of(scan: Scan) -> Iterator[object]:
    """Read until nothing is left; yields after each batch. Raises WorkRefused."""
    definition = read_definition(scan.scanner.definition)
    size = MODEL_BATCH if isinstance(definition, ModelQuestion) else BATCH
    try:
        check_allowed(definition, scan.team)
        with asking(definition) as ask:
            yield from read_batches(scan, ask, size)
    except (ModelRefused, BadValue) as refused:
        raise WorkRefused(str(refused)) from refused


@contextmanager
def asking(definition: Definition) -> Iterator[Ask]:
    """How a batch is judged. Raises ModelRefused."""
    if not isinstance(definition, ModelQuestion):
        pattern = definition
        yield lambda batch: [_pattern_answer(find(pattern, paid)) for paid in batch]
        return
    question, server = definition, ChatServer(definition)
    with ThreadPoolExecutor(MODEL_BATCH) as pool:
        yield lambda batch: list(pool.map(lambda paid: ask_model(server, question, paid.transcript), batch))


def _pattern_answer(hit: Hit | None) -> Answer:
    return Answer(Outcome.CLEAR if hit is None else Outcome.FOUND, hit, 0, 0)


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
    cost = 0.0
    if isinstance(definition, ModelQuestion):
        cost = (prompt * definition.price_in + completion * definition.price_out) / 1e6
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
