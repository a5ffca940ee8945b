"""What every desktop's agent offers: files and commands inside the desktop.

An agent is one class behind `Agent` and one row in `workers.desktops.registry.AGENTS`. Every failure of the
desktop is an `EnvError`. Not thread-safe.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class ExecResult:
    """What a finished command left."""

    returncode: int
    output: str
    error: str


@dataclass(frozen=True)
class Waiting:
    """What the programs of a desktop are doing."""

    num_working: int
    """Threads that compute, or wait for their turn or the disk."""
    timers: list[tuple[str, float]]
    """(program, seconds until it goes on by itself, counted from when it began to wait); at most 5."""


class Agent(Protocol):
    """Files and commands of one desktop."""

    @property
    def platform(self) -> str:
        """The system of the guest, linux or windows; evaluators ask in its words."""

    def execute(
        self, command: str | list[str], *, shell: bool = False, timeout_s: float = 60.0
    ) -> ExecResult:
        """Run a command to its end. A non-zero exit is an answer, not an error."""

    def launch(
        self, command: str | list[str], *, shell: bool = False, env: dict[str, str] | None = None
    ) -> int:
        """Start a program on the screen; its pid inside the desktop, 0 where that is not known."""

    def open_file(self, path: str) -> None:
        """Open a file in the program that the guest has for it."""

    def put(self, path: str, data: bytes) -> None:
        """Write a file; folders are made."""

    def get(self, path: str) -> bytes | None:
        """A file's bytes, None when there is no such file."""

    def use_place(self, timezone: str, locale: str) -> None:
        """Until the next reset programs have this time zone and locale; "" = UTC, C.UTF-8.

        Raises EnvError of kind task where the desktop cannot have them.
        """

    def waiting(self) -> Waiting | None:
        """What the programs are doing now; None where that is not known."""

    def accessibility(self) -> str:
        """OSWorld's XML of all programs' widgets. Raises EnvError within seconds, whatever hangs."""

    def terminal(self) -> str:
        """Text of the terminal in front, "" when there is none; as `accessibility`."""

    def begin_evaluation(self) -> None:
        """From now to the next reset, the trajectory's programs cannot reach commands, where it can."""

    def close(self) -> None:
        """Disconnect. Idempotent."""
