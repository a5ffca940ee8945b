"""Screens that are open to people, control of them, and what people did."""

from __future__ import annotations

from webapp.screens.models import ControlStatus
from webapp.worker_door import human_control as door
from webapp.worker_door.human_control import ControlNow, HumanAction
from workers.door.through import is_joined, through
from workers.env.reporting.trajectories import look_at

__all__ = ["ControlNow", "ControlStatus", "HumanAction"]

read_ticket = through(door.read_ticket)
close_screen = through(door.close_screen)
grant = through(door.grant_control)
refresh = through(door.refresh_control)
human_actions = through(door.human_actions)
_open_screen = through(door.open_screen)
_active_control = through(door.active_control)


def open_screen(trajectory_id: int, addresses: list[str]) -> None:
    """From another host the web reaches no unix socket."""
    _open_screen(trajectory_id, [at for at in addresses if not (is_joined() and at.startswith("unix:"))])


def active_control(trajectory_id: int) -> ControlNow | None:
    """The control that is requested or held; on a joined host as of the last heartbeat that came through."""
    if is_joined() and not look_at(trajectory_id).has_control:
        return None
    return _active_control(trajectory_id)
