"""Writes of the mirror: what a desk host says of itself and its desktops becomes rows.

The mirror reports everything first and now and then, in between what differs from its last report. Only the
mirror changes the phase of a desktop that a desk host owns.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence, Set
from dataclasses import asdict, fields
from datetime import timedelta
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import DataError, IntegrityError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from training.untrusted.pictures import NotAPicture, decode_picture
from webapp.fleet.desk_host_states import DesktopFigures, DesktopState, FailedBoot, HostChanges, HostState
from webapp.fleet.models import BootFailure, Desktop, DesktopPhase, Host, Worker
from webapp.fleet.services import history
from webapp.lib.columns.stored_fields import stored_value
from webapp.lib.remote_calls import OwnHost, OwnWorker, env_host
from webapp.lib.statements.short_statements import execute
from webapp.live.event_publishing import publish

log = logging.getLogger(__name__)

UNSTORABLE = (DataError, IntegrityError)
"""A value that no repetition makes fit."""
KEEP_GONE = timedelta(days=1)
KEEP_FAILURES = timedelta(days=7)


@env_host.request
@transaction.atomic
def record_problem(host: OwnHost, problem: str) -> None:
    """The desk host does not answer. Its desktops keep their last rows until it tells of them again."""
    if Host.objects.filter(name=host).exclude(problem=problem).update(problem=problem):
        publish("fleet", "host.updated", {"host": host})


@env_host.request
def record_host(host: OwnHost, state: HostState) -> None:
    """Everything of a report, changed or not; a desktop that cannot be stored is left out."""
    try:
        _record_host(host, state, _write)
    except UNSTORABLE:
        _record_host(host, state, _write_each)


@env_host.request
def record_changes(host: OwnHost, by: OwnWorker, changes: HostChanges) -> bool:
    """What differs, without a look at the rest. False when `by` is not the mirror any more."""
    try:
        return _record_changes(host, by, changes, _write)
    except UNSTORABLE:
        return _record_changes(host, by, changes, _write_each)


@transaction.atomic
def _record_host(host: str, state: HostState, write: Write) -> None:
    now = timezone.now()
    before = Host.objects.select_for_update().get(name=host)
    Host.objects.filter(pk=before.pk).update(**state.values, heartbeat_at=now, problem="")
    _record_failures(before, state.failures)
    providers = {provider["provider"] for provider in state.values.get("providers", [])}
    if _record_desktops(host, state.desktops, providers, write):
        return  # it has published
    is_new = before.problem or bool(before.leaks) != bool(state.values.get("leaks"))
    if is_new or before.heartbeat_at is None:
        publish("fleet", "host.updated", {"host": host})


@transaction.atomic
def _record_changes(host: str, by: str, changes: HostChanges, write: Write) -> bool:
    mirrored = Host.objects.filter(name=host, mirrored_by=by)
    if not mirrored.update(**changes.values, heartbeat_at=timezone.now(), problem=""):
        return False
    write(host, [(Desktop(name=state.name), state) for state in changes.desktops], "name")
    _write_figures(host, changes.figures)
    if changes.gone:
        _end(Desktop.objects.filter(host=host, name__in=changes.gone))
    if changes.desktops or changes.gone:
        _publish_desktops(host, len(changes.desktops), len(changes.gone))
    return True


def _record_desktops(host: str, desktops: Sequence[DesktopState], providers: Set[str], write: Write) -> bool:
    """All desktops of a host; publishes once when any of them changed for people."""
    rows = {row.name: row for row in Desktop.objects.filter(host=host).exclude(phase=DesktopPhase.GONE)}
    new = {state.name for state in desktops} - set(rows)
    # Known under another phase: GONE by mistake, or named by a trajectory before we heard of it.
    rows |= {row.name: row for row in Desktop.objects.filter(name__in=new)} if new else {}
    known: list[Reported] = []
    unknown: list[Reported] = []
    num_changed = 0
    for state in desktops:
        row = rows.get(state.name)
        num_changed += row is None or _differs(row, state)
        (unknown if row is None else known).append((row or Desktop(name=state.name), state))
    # Two statements at most, however many desktops a host has.
    write(host, known, "pk")
    write(host, unknown, "")
    listed = {state.name for state in desktops}
    gone = [row.pk for row in rows.values() if row.name not in listed and row.provider in providers]
    if gone:
        _end(Desktop.objects.filter(pk__in=gone))
    if num_changed or gone:
        _publish_desktops(host, num_changed, len(gone))
    return bool(num_changed or gone)


def _differs(row: Desktop, state: DesktopState) -> bool:
    """Whether people would see another desktop."""
    return any(getattr(row, name) != stored_value(Desktop, name, getattr(state, name)) for name in _SHOWN)


Reported = tuple[Desktop, DesktopState]
Write = Callable[[str, Sequence[Reported], str], None]


def _write_each(host: str, reported: Sequence[Reported], unique: str) -> None:
    """As `_write`, one by one: all but those that the database refuses."""
    for row, state in reported:
        try:
            with transaction.atomic():
                _write(host, [(row, state)], unique)
        except UNSTORABLE as error:
            log.warning("desktop %r of %s is not recorded: %s", state.name[:80], host, error)


def _write(host: str, reported: Sequence[Reported], unique: str) -> None:
    """One statement for all; `unique`: the column by which rows that there are already are found."""
    reported = _without_others(host, reported)
    if not reported:
        return
    now = timezone.now()
    workers: dict[str, int] = {}
    if any(state.holder for _, state in reported):
        workers = dict(Worker.objects.filter(host=host).values_list("name", "pk"))
    for row, state in reported:
        for name in _SHOWN:
            setattr(row, name, getattr(state, name))
        for name in _FIGURES:
            setattr(row, name, getattr(state.figures, name))
        row.host, row.mirrored_at = host, now
        row.worker_id = workers.get(state.holder.rpartition("/")[0])
    rows = [row for row, _ in reported]
    if unique:
        Desktop.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=[unique], update_fields=_WRITTEN
        )
    else:
        Desktop.objects.bulk_create(rows)


def _without_others(
    host: str, reported: Sequence[tuple[Desktop, DesktopState]]
) -> Sequence[tuple[Desktop, DesktopState]]:
    """Rows of another host that lives stay as they are: a name in a report is no right to them."""
    names = [state.name for _, state in reported]
    others = Desktop.objects.filter(name__in=names).exclude(host=host).exclude(mirrored_at=None)
    taken = set(others.exclude(phase=DesktopPhase.GONE).values_list("name", flat=True))
    return [one for one in reported if one[1].name not in taken] if taken else reported


def _write_figures(host: str, reported: dict[str, DesktopFigures]) -> None:
    """One statement for all; whole rows would take four times as long."""
    if not reported:
        return
    columns = {name: f"reported.column{number}" for number, name in enumerate(_FIGURES, start=2)}
    if connection.vendor == "postgresql":  # which takes a column of nothing but NULL for texts
        columns["lease_until"] += "::timestamptz"
    sets = ", ".join(f"{name} = {value}" for name, value in columns.items())
    values = ", ".join([f"({', '.join(['%s'] * (1 + len(columns)))})"] * len(reported))
    sql = (
        f"UPDATE fleet_desktop SET {sets}, updated_at = %s FROM (VALUES {values}) AS reported "
        "WHERE fleet_desktop.host = %s AND fleet_desktop.name = reported.column1"
    )
    params: list[Any] = [timezone.now()]
    for name, figures in reported.items():
        params += [name, *(getattr(figures, column) for column in _FIGURES)]
    execute(sql, [*params, host])


def _end(gone: QuerySet[Desktop]) -> None:
    """No one holds what is gone."""
    nothing = {"worker": None, "holder": "", "lease_until": None}
    gone.update(phase=DesktopPhase.GONE, updated_at=timezone.now(), **nothing)


def _publish_desktops(host: str, num_changed: int, num_gone: int) -> None:
    publish("fleet", "desktop.updated", {"host": host, "changed": num_changed, "gone": num_gone})


_FIGURES = [column.name for column in fields(DesktopFigures)]
_SHOWN = [column.name for column in fields(DesktopState) if column.compare and column.name != "name"]
_WRITTEN = [*_SHOWN, *_FIGURES, "host", "worker", "mirrored_at", "updated_at"]


def _record_failures(host: Host, failures: Sequence[FailedBoot]) -> None:
    """Those that are not known yet; a desk host tells its latest ones with each report."""
    if not failures:
        return
    oldest = min(failure.at for failure in failures)
    known = set(host.boot_failures.filter(at__gte=oldest).values_list("number", "at"))
    for failure in failures:
        if (failure.number, failure.at) in known:
            continue
        values = asdict(failure)
        picture = values.pop("screenshot")
        path = f"fleet/{host.pk}-{failure.at:%Y%m%d%H%M%S}-{failure.number}"
        stored = default_storage.save(path, ContentFile(picture)) if _is_picture(picture) else ""
        BootFailure.objects.create(host=host, screenshot=stored, **values)


def _is_picture(data: bytes) -> bool:
    """Whether browsers may be shown it."""
    try:
        decode_picture(data)
    except NotAPicture:
        return False
    return True


@env_host.request
def forget_old() -> None:
    """Drop history that no chart reaches, and rows of desktops that left no trajectory."""
    now = timezone.now()
    history.forget_history()
    gone = Desktop.objects.filter(phase=DesktopPhase.GONE, updated_at__lt=now - KEEP_GONE)
    gone.filter(trajectory=None).delete()
    for failure in BootFailure.objects.filter(at__lt=now - KEEP_FAILURES):
        if failure.screenshot:
            default_storage.delete(failure.screenshot)
        failure.delete()
