"""Sends the database what a desk host reports: everything first, then what differs from the last report.

A busy host changes at every trajectory, a quiet one hardly at all, and each desktop that is sent costs as
much as a part of a turn. So desktops that look the same to people are left out, and a quiet round writes
nothing.
"""

import time
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, cast

from webapp.worker_door.host_mirror import (
    DesktopFigures,
    DesktopState,
    HostChanges,
    HostValues,
    record_changes,
    record_host,
)
from workers.desktops.host.messages import BootFailure, HostReport
from workers.fleet.host_states import desktop_state, host_state, host_values
from workers.reports.current import reports

FIGURES_S = 3.0
"""How often CPU, memory and lease times are compared."""
WHOLE_S = 30.0
"""How often everything is sent again, so that a row that something else changed is mended."""
LEAST_TIME = timedelta(seconds=1)
LEAST = {"cpu_percent": 1.0, "load": 0.1, "memory_mb": 1.0, "memory_used_mb": 10.0, "disk_free_mb": 10.0}
"""Smaller changes of figures show on no page."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What the database was sent last."""

    values: dict[str, Any]
    desktops: dict[str, DesktopState]
    failures: list[BootFailure]


class ReportTeller:
    """Of one host, for as long as this worker mirrors it."""

    def __init__(self, host: str, by: str) -> None:
        self._host, self._by = host, by
        self._sent: Sent | None = None
        self._figures_at = self._whole_at = 0.0

    def forget(self) -> None:
        """Others may have written since: everything is sent next."""
        self._sent = None

    def tell(self, report: HostReport, *, has_changed: bool) -> None:
        """Everything, what differs, or nothing. Raises DatabaseError; then everything is sent next.

        `has_changed`: a phase or lease, since the report before.
        """
        now, sent = time.monotonic(), self._sent
        is_figures_round = now - self._figures_at >= FIGURES_S
        if sent is not None and not is_figures_round and not has_changed:
            return
        self._sent = None  # until it is recorded
        values = host_values(report)
        is_old = now - self._whole_at >= WHOLE_S
        if sent is None or (is_figures_round and (is_old or _is_news(report, values, sent))):
            state = host_state(report)
            reports().request(record_host, self._host, state)
            desktops = {one.name: one for one in state.desktops}
            self._sent = Sent(values, desktops, report.failures)
            self._figures_at = self._whole_at = now
        else:
            self._sent = self._tell_changes(report, values if is_figures_round else {}, sent)
            self._figures_at = now if is_figures_round else self._figures_at

    def _tell_changes(self, report: HostReport, values: dict[str, Any], sent: Sent) -> Sent | None:
        """With figures when there are `values`. None when another worker mirrors this host meanwhile."""
        states = {state.name: state for state in map(desktop_state, report.desktops)}
        changed = [state for name, state in states.items() if state != sent.desktops.get(name)]
        moved: dict[str, DesktopFigures] = {}
        if values:
            others = states.keys() - {state.name for state in changed}
            moved = {name: states[name].figures for name in others if _has_moved(states[name], sent)}
        changes = HostChanges(
            values=cast(
                HostValues,
                {name: value for name, value in values.items() if _differs(name, value, sent.values[name])},
            ),
            desktops=changed,
            figures=moved,
            gone=[name for name in sent.desktops if name not in states],
        )
        is_quiet = not (changes.values or changes.desktops or changes.figures or changes.gone)
        if not is_quiet and not reports().request(record_changes, self._host, self._by, changes):
            return None
        is_sent = {state.name for state in changed} | moved.keys()
        desktops = {name: state if name in is_sent else sent.desktops[name] for name, state in states.items()}
        return Sent({**sent.values, **changes.values}, desktops, sent.failures)


def _is_news(report: HostReport, values: dict[str, Any], sent: Sent) -> bool:
    """What changes seldom, and has rows or events of its own."""
    rare = ("providers", "leaks")
    return report.failures != sent.failures or any(values[name] != sent.values[name] for name in rare)


def _has_moved(state: DesktopState, sent: Sent) -> bool:
    """Whether a page would show other figures of a desktop."""
    before = sent.desktops[state.name].figures
    names = (column.name for column in fields(before))
    return any(_differs(name, getattr(state.figures, name), getattr(before, name)) for name in names)


def _differs(name: str, value: Any, before: Any) -> bool:
    """Times are computed from ages anew with each report."""
    if isinstance(value, datetime) and isinstance(before, datetime):
        return abs(value - before) >= LEAST_TIME
    if name in LEAST:
        return bool(abs(value - before) >= LEAST[name])
    return bool(value != before)
