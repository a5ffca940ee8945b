"""The only door from the mirror to the database: calls the services, or asks them over HTTPS."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone

from webapp.fleet import desk_host_reports
from webapp.fleet.models import DesktopPhase, Verb
from webapp.worker_door import host_mirror as door
from webapp.worker_door import snapshots as snapshots_door
from webapp.worker_door.host_mirror import AskedOperation as Operation
from webapp.worker_door.host_mirror import HostOrders
from workers import identity
from workers.desktops.host.messages import BootFailure, DesktopStatus, HostReport, KeptSnapshot
from workers.door.through import through

__all__ = ["HostOrders", "Operation", "Verb"]

claim_mirror = through(door.claim_mirror)
hand_over_mirror = through(door.hand_over_mirror)
record_problem = through(door.record_problem)
sample_host = through(door.sample_host)
forget_old = through(door.forget_old)
take_operations = through(door.take_operations)
live_on_desktop = through(door.live_on_desktop)
take_away = through(door.take_away)
_record_host = through(door.record_host)
_record_desktops = through(door.record_desktops)
_end_operation = through(door.end_operation)
_unknown_snapshots = through(snapshots_door.unknown_snapshots)


def record_report(host: str, report: HostReport, *, with_figures: bool) -> None:
    """Write the whole report, or without figures only what people do not want to wait for: its desktops."""
    if with_figures:
        _record_host(host, host_state(report))
        return
    providers = [health.provider for health in report.health.providers]
    _record_desktops(host, [desktop_state(status) for status in report.desktops], providers)


def unknown_snapshots(kept: Iterable[KeptSnapshot], asked_at: datetime) -> set[str]:
    """Of what this machine's desk host keeps, what no row knows; rows of what it keeps no more are gone."""
    created = {snapshot.name: snapshot.created_at for snapshot in kept}
    return _unknown_snapshots(identity.current().host, created, asked_at)


def end_operation(operation: Operation, outcome: str, *, is_done: bool) -> None:
    _end_operation(operation.pk, outcome, is_done)


def host_state(report: HostReport) -> desk_host_reports.HostState:
    """The report as rows of the database hold it."""
    health, machine = report.health, report.machine
    started_at = timezone.now() - timedelta(seconds=health.uptime_s)
    values: dict[str, Any] = machine.model_dump() | {
        "started_at": started_at,
        "max_desktops": health.max_desktops,
        "swept": health.swept,
        "num_resets": report.num_resets,
        "num_failures": report.num_failures,
        "reset_p50_s": report.resets.p50_s,
        "reset_p99_s": report.resets.p99_s,
        "providers": [provider.model_dump() for provider in health.providers],
        "pool": [kind.model_dump() for kind in report.pool],
        "snapshots": report.snapshots.model_dump(),
        "leaks": [leak.model_dump() for leak in report.leaks],
    }
    return desk_host_reports.HostState(
        values=values,
        desktops=[desktop_state(status) for status in report.desktops],
        failures=[failed_boot(failure) for failure in report.failures],
    )


def desktop_state(status: DesktopStatus) -> desk_host_reports.DesktopState:
    info, now = status.info, timezone.now()
    return desk_host_reports.DesktopState(
        name=info.desktop_id,
        provider=info.provider,
        phase=DesktopPhase(status.phase),
        boot_phase=status.boot_phase,
        generation=info.generation,
        width=info.spec.width,
        height=info.spec.height,
        holder=status.holder[:160],
        num_resets=status.resets,
        num_rebuilds=status.rebuilds,
        num_failures=status.failures,
        reason=status.reason,
        quarantine=status.quarantine,
        log=status.log,
        has_vnc=bool(info.endpoints.vnc),
        last_reset_s=status.last_reset_s,
        lease_until=now + timedelta(seconds=status.lease_left_s) if status.lease_id else None,
        cpu_percent=status.cpu_percent,
        memory_mb=status.usage.rss_mb,
        num_processes=status.usage.processes,
        born_at=now - timedelta(seconds=status.age_s),
    )


def failed_boot(failure: BootFailure) -> desk_host_reports.FailedBoot:
    picture = Path(failure.screenshot) if failure.screenshot else None
    return desk_host_reports.FailedBoot(
        number=failure.number,
        at=datetime.fromtimestamp(failure.at, tz=UTC),
        desktop_name=failure.desktop_id,
        provider=failure.provider,
        boot_phase=failure.boot_phase,
        reason=failure.reason,
        log=failure.log,
        screenshot=picture.read_bytes() if picture and picture.exists() else b"",
    )
