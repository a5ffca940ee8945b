"""Reports of joined hosts: each is recorded once, in its host's order, whatever is sent again.

A report and its number are written in one transaction. What cannot be recorded (its trajectory was deleted,
say) is refused, noted and passed: it would hold up everything behind it.
"""

import hashlib
import logging
from collections.abc import Mapping
from functools import partial
from itertools import groupby

from django.db import transaction
from django.db.models import F
from django.http import HttpRequest, HttpResponse

from training.untrusted.packed_texts import NotAText, is_packed
from training.untrusted.pictures import NotAPicture
from webapp.fleet.models import JoinedHost
from webapp.lib.outage_retries import passes
from webapp.lib.remote_calls import call_named
from webapp.trajectories.services.frames import store_frame
from webapp.trajectories.services.texts import store_text
from webapp.worker_door.joined_hosts.batches import Batch, NamedFrame, Received, SentReport
from webapp.worker_door.joined_hosts.views import body_of, for_hosts
from webapp.worker_door.ownership import answer, works_for
from webapp.worker_door.trajectories import missing_frames

log = logging.getLogger(__name__)


@for_hosts
def host_reports(request: HttpRequest, host: JoinedHost) -> HttpResponse:
    """Record a batch of reports: its JSON on one line, then the screenshots that they name."""
    line, _, pictures = body_of(request).partition(b"\n")
    received = receive(host, Batch.model_validate_json(line), pictures)
    return HttpResponse(received.model_dump_json(), content_type="application/json")


def receive(host: JoinedHost, batch: Batch, pictures: bytes = b"") -> Received:
    """Record what is new of a batch, its screenshots first.

    Raises errors of database and storage that pass: what was recorded before one stays.
    """
    bad = _store(batch.frames, pictures)
    missing = missing_frames([(frame.team, frame.sha256) for frame in batch.frames if not frame.size])
    if missing:
        named = [NamedFrame(team=team, sha256=sha256) for team, sha256 in missing]
        return Received(number=host.received, refused={}, missing=named)
    refused: dict[int, str] = {}
    for _, together in groupby(batch.reports, key=partial(_transaction_of, bad)):
        refused |= _record(host, batch.stream, list(together), bad)
    return Received(number=batch.reports[-1].number, refused=refused)


def _store(frames: list[NamedFrame], pictures: bytes) -> dict[str, str]:
    """Those that are no screenshots (sha256 -> why): the reports that name them are refused."""
    end, bad = 0, dict[str, str]()
    teams = {team for team in {frame.team for frame in frames if frame.size} if works_for(team)}
    for frame in frames:
        begin, end = end, end + frame.size
        if not frame.size or frame.team not in teams:
            continue
        png = pictures[begin:end]
        try:
            if is_packed(png):
                store_text(frame.team, png, frame.sha256)
                continue
            if hashlib.sha256(png).hexdigest() != frame.sha256:
                raise NotAPicture("its bytes are others")
            store_frame(frame.team, png, sha256=frame.sha256)
        except (NotAPicture, NotAText) as error:
            log.warning("screenshot %s was refused: %s", frame.sha256, error)
            bad[frame.sha256] = f"screenshot {frame.sha256[:12]}: {error}"
    return bad


def _why_bad(sent: SentReport, bad: Mapping[str, str]) -> str:
    """Of the first of its screenshots that is none; "" = it names none of them."""
    return next((why for sha256, why in bad.items() if sha256 in sent.body), "")


def _transaction_of(bad: Mapping[str, str], sent: SentReport) -> tuple[str, int | None]:
    """The same for neighbours that are recorded together: one commit costs as much as a report."""
    call = call_named(sent.name)
    shares = call is not None and call.shares_transaction and not _why_bad(sent, bad)
    return ("of", sent.trajectory) if shares else ("number", sent.number)


def _record(
    host: JoinedHost, stream: str, together: list[SentReport], bad: Mapping[str, str]
) -> dict[int, str]:
    """Record all of them, or, when one cannot be, each by itself. Which were refused, and why."""
    try:
        with transaction.atomic():
            for sent in _count(host, stream, together):
                if why := _why_bad(sent, bad):
                    raise NotAPicture(why)
                _record_one(sent, host)
    except Exception as error:  # the edge to another host: one bad report stops no other
        if passes(error):
            raise
        if len(together) > 1:
            alone = [_record(host, stream, [sent], bad) for sent in together]
            return {number: why for refused in alone for number, why in refused.items()}
        (sent,) = together
        log.warning("%s: report %s (%s) refused: %s", host.name, sent.number, sent.name, error)
        _count(host, stream, together, is_refused=True)
        return {sent.number: f"{type(error).__name__}: {error}"}
    return {}


def _record_one(sent: SentReport, host: JoinedHost) -> None:
    call = call_named(sent.name)
    if call is None or not call.is_report:
        raise LookupError(f"no report is called {sent.name}")
    answer(call, sent.body.encode(), host.roles)


def _count(
    host: JoinedHost, stream: str, together: list[SentReport], *, is_refused: bool = False
) -> list[SentReport]:
    """Note that they were received; those that had not been before."""
    rows = JoinedHost.objects.filter(pk=host.pk)
    others = rows.exclude(stream=stream, received__gte=together[0].number)
    newest = together[-1].number
    if others.update(stream=stream, received=newest, num_refused=F("num_refused") + (1 if is_refused else 0)):
        return together
    received = rows.values_list("received", flat=True).get()
    rest = [sent for sent in together if sent.number > received]
    return _count(host, stream, rest, is_refused=is_refused) if rest else []
