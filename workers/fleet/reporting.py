"""The only door from the mirror to the database: calls the services, or asks them over HTTPS."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from django.utils import timezone

from webapp.fleet.desk_host_states import DesktopFigures, DesktopState, FailedBoot, HostChanges, HostState
from webapp.fleet.models import DesktopPhase, Verb
from webapp.fleet.reported_values import HostValues
from webapp.fleet.services.mirror_claims import HostNow
from webapp.worker_door import host_mirror as door
from webapp.worker_door import snapshots as snapshots_door
from webapp.worker_door.host_mirror import AskedOperation as Operation
from webapp.worker_door.host_mirror import DesktopsWanted
from workers import identity
from workers.desktops.host.messages import BootFailure, DesktopStatus, HostReport, KeptSnapshot
from workers.door.through import through

__all__ = [
    "DesktopFigures",
    "DesktopState",
    "DesktopsWanted",
    "HostChanges",
    "HostNow",
    "HostValues",
    "Operation",
    "Verb",
]

claim_mirror = through(door.claim_mirror)
wanted_desktops = through(door.wanted_desktops)
hand_over_mirror = through(door.hand_over_mirror)
record_problem = through(door.record_problem)
record_host = through(door.record_host)
record_changes = through(door.record_changes)
sample_host = through(door.sample_host)
forget_old = through(door.forget_old)
take_operations = through(door.take_operations)
live_on_desktop = through(door.live_on_desktop)
take_away = through(door.take_away)
_end_operation = through(door.end_operation)
_unknown_snapshots = through(snapshots_door.unknown_snapshots)


def unknown_snapshots(kept: Iterable[KeptSnapshot], asked_at: datetime) -> set[str]:
    """Of what this machine's desk host keeps, what no row knows; rows of what it keeps no more are gone."""
    created = {snapshot.name: snapshot.created_at for snapshot in kept}
    return _unknown_snapshots(identity.current().host, created, asked_at)


def end_operation(operation: Operation, outcome: str, *, is_done: bool) -> None:
    _end_operation(operation.pk, outcome, is_done)


def host_values(report: HostReport) -> dict[str, Any]:
    """Columns of the host's row."""
    health, machine = report.health, report.machine
    return machine.model_dump() | {
        "started_at": timezone.now() - timedelta(seconds=health.uptime_s),
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


def host_state(report: HostReport) -> HostState:
    """The report as rows of the database hold it."""
    return HostState(
        values=cast(HostValues, host_values(report)),
        desktops=[desktop_state(status) for status in report.desktops],
        failures=[failed_boot(failure) for failure in report.failures],
    )


def desktop_state(status: DesktopStatus) -> DesktopState:
    info, now = status.info, timezone.now()
    figures = DesktopFigures(
        last_reset_s=status.last_reset_s,
        lease_until=now + timedelta(seconds=status.lease_left_s) if status.lease_id else None,
        cpu_percent=status.cpu_percent,
        memory_mb=status.usage.rss_mb,
        num_processes=status.usage.processes,
        born_at=now - timedelta(seconds=status.age_s),
    )
    return DesktopState(
        name=info.desktop_id,
        provider=info.provider,
        phase=DesktopPhase(status.phase),
        boot_phase=status.boot_phase,
        generation=info.generation,
        width=info.spec.width,
        height=info.spec.height,
        holder=status.holder,
        num_resets=status.resets,
        num_rebuilds=status.rebuilds,
        num_failures=status.failures,
        reason=status.reason,
        quarantine=status.quarantine,
        log=status.log,
        has_vnc=bool(info.endpoints.vnc),
        figures=figures,
    )


def failed_boot(failure: BootFailure) -> FailedBoot:
    picture = Path(failure.screenshot) if failure.screenshot else None
    return FailedBoot(
        number=failure.number,
        at=datetime.fromtimestamp(failure.at, tz=UTC),
        desktop_name=failure.desktop_id,
        provider=failure.provider,
        boot_phase=failure.boot_phase,
        reason=failure.reason,
        log=failure.log,
        screenshot=picture.read_bytes() if picture and picture.exists() else b"",
    )
