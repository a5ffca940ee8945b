"""A desk host's report as rows of the database hold it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from django.utils import timezone

from webapp.worker_door.host_mirror import (
    DesktopFigures,
    DesktopPhase,
    DesktopState,
    FailedBoot,
    HostState,
    HostValues,
)
from workers.desktops.host.messages import BootFailure, DesktopStatus, HostReport


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
