"""The only door from the mirror to the database: calls the web application's services."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone

from webapp.fleet import desk_host_reports, operator_requests
from webapp.fleet.desk_host_reports import (
    claim_mirror,
    forget_old,
    hand_over_mirror,
    record_problem,
    sample_host,
)
from webapp.fleet.env_capacity import count_slots_of_host, is_host_draining
from webapp.fleet.models import DesktopPhase, Operation, OperationStatus, Verb
from webapp.fleet.operator_requests import take_operations
from webapp.trajectories import kept_desktop_snapshots
from webapp.trajectories.desktop_demand import waiting_desktops
from webapp.trajectories.lifecycle.desktop_taken_away import live_on_desktop, take_away
from workers import identity
from workers.desktops.host.messages import BootFailure, DesktopStatus, HostReport, KeptSnapshot

__all__ = [
    "Operation",
    "Verb",
    "claim_mirror",
    "count_slots_of_host",
    "forget_old",
    "hand_over_mirror",
    "is_host_draining",
    "live_on_desktop",
    "record_problem",
    "sample_host",
    "take_away",
    "take_operations",
    "waiting_desktops",
]


def record_report(host: str, report: HostReport, *, with_figures: bool) -> None:
    """Write the whole report, or without figures only what people do not want to wait for: its desktops."""
    if with_figures:
        desk_host_reports.record_host(host=host, state=host_state(report))
        return
    providers = [health.provider for health in report.health.providers]
    desktops = [desktop_state(status) for status in report.desktops]
    desk_host_reports.record_desktops(host=host, desktops=desktops, providers=providers, with_figures=False)


def unknown_snapshots(kept: Iterable[KeptSnapshot], asked_at: datetime) -> set[str]:
    """Of what this machine's desk host keeps, what no row knows; rows of what it keeps no more are gone."""
    ages_s = {snapshot.name: kept_desktop_snapshots.age_s(snapshot.created_at) for snapshot in kept}
    return kept_desktop_snapshots.reconcile_with_host(
        host=identity.current().host, ages_s=ages_s, asked_at=asked_at
    )


def end_operation(operation: Operation, outcome: str, *, is_done: bool) -> None:
    status = OperationStatus.DONE if is_done else OperationStatus.FAILED
    operator_requests.end_operation(operation=operation, status=status, outcome=outcome)


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
