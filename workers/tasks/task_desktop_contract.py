"""What setup and evaluators need of a desktop; `workers.desktops.leased_desktop.DesktopEnv` is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from training.contracts.types import Action

if TYPE_CHECKING:
    from workers.desktops.agent_contract import Agent
    from workers.desktops.console_contract import Console, Window


class TaskDesktop(Protocol):
    """Every method raises `workers.desktops.contract.EnvError` when the desktop does not answer."""

    @property
    def agent(self) -> Agent:
        """Files and commands inside the desktop."""

    @property
    def console(self) -> Console:
        """Its screen and input."""

    def act(self, action: Action) -> None:
        """Do one action."""

    def windows(self) -> list[Window]:
        """Managed windows, oldest first."""

    def wait_for_window(self, text: str, *, timeout_s: float = 10.0, settled: bool = True) -> Window:
        """Wait for a window whose title or class contains `text`."""

    def activate_window(self, text: str) -> bool:
        """Raise and focus; False when there is none."""

    def close_window(self, text: str) -> bool:
        """Ask it to close; False when there is none."""
