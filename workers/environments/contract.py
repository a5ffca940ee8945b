"""What an episode uses: a desktop that can be prepared for a task, driven and scored.

Life of an environment:  opened -> reset? -> prepare -> (observe, act)* -> evaluate -> reset ... -> closed
One thread uses it. A provider's environment is one file and one row in
`workers.environments.registry.ENVIRONMENTS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from training.contracts.config import NO_KNOBS, DesktopConfig, ProviderSection
from training.contracts.metric_finding import MetricFinding
from training.contracts.milestone import Milestone
from training.contracts.types import Action, Task
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.desktop_texts import NOTHING, Reads
from workers.desktops.frame import Frame
from workers.desktops.host.messages import KeptSnapshot


class AtCapacity(EnvError):
    """Raised when an environment cannot be opened now, but later: the trajectory is parked, not failed."""

    def __init__(
        self,
        message: str,
        *,
        retry_after_s: float | None = None,
        position: int | None = None,
        wait_s: float | None = None,
    ) -> None:
        super().__init__(message, kind=ErrorKind.QUOTA)
        self.retry_after_s = retry_after_s
        """When to ask again, seconds; None = unknown, ask with growing pauses."""
        self.position = position
        """Place in the other side's queue, 1 = next; None = unknown."""
        self.wait_s = wait_s
        """The other side's estimate, seconds; None = unknown."""


class Environment(Protocol):
    """A desktop with a task on it. Every method may raise `workers.desktops.contract.EnvError`."""

    @property
    def desktop_id(self) -> str:
        """Name on the fleet page; may change with `reset` or `prepare`."""

    @property
    def provider(self) -> str:
        """The row of the table that it came from."""

    @property
    def is_lost(self) -> bool:
        """True when the right to the desktop is gone (lease or session over): close, open another."""

    def prepare(self, task: Task) -> None:
        """Set the task up on a clean desktop. Raises SetupError."""

    def observe(self) -> Frame:
        """The screen, after the last action's effect."""

    def act(self, action: Action) -> None:
        """Do one action; EnvError of kind `task` = refused, the agent's mistake."""

    def evaluate(self, task: Task, last_action: Action | None) -> float:
        """Score in [0, 1]; asked once per episode. Raises EvaluatorError, never answers 0 for an error."""

    def reset(self) -> None:
        """Clean again for another trajectory."""

    def close(self) -> None:
        """Give everything back. Idempotent, raises nothing."""


@runtime_checkable
class Noticing(Protocol):
    """An environment that notices what its screen does after a picture was taken."""

    def has_changed(self) -> bool:
        """Whether it shows something else than the last picture; then `observe` waits for it to rest."""

    def wait_for_late(self) -> None:
        """Until programs that were about to go on by themselves have."""


@runtime_checkable
class Watchable(Protocol):
    """An environment whose live screen people can watch, and use when they take it over."""

    @property
    def vnc_socket(self) -> str:
        """Unix socket of its VNC server at this moment; "" when it has none."""

    def let_go(self) -> None:
        """After a person: every key and button is up."""


@runtime_checkable
class Arrangeable(Protocol):
    """An environment on whose desktop people can make a task."""

    def arrange(self, step: dict[str, Any]) -> None:
        """Do one more step of a set-up. Raises SetupError."""

    def look(self) -> dict[str, Any]:
        """What stands on the desktop, as `workers.tasks.desktop_state` has it."""


@runtime_checkable
class Explaining(Protocol):
    """An environment that can say what its evaluator looked at."""

    @property
    def checks(self) -> tuple[MetricFinding, ...]:
        """Of the last `evaluate`."""


@runtime_checkable
class Inspectable(Protocol):
    """An environment whose desktop evaluators can look at while the agent works."""

    def reached(self, milestones: Sequence[Milestone]) -> list[str]:
        """Names of those that hold now. Raises EvaluatorError where one cannot be read."""


@runtime_checkable
class Branchable(Protocol):
    """An environment whose desktop can be saved while it runs, so that others go on from there."""

    @property
    def can_be_saved(self) -> bool:
        """Whether the desktops of its provider can."""

    def snapshot(self, label: str) -> KeptSnapshot:
        """Save the desktop as it is now and go on; `label` says whose it is."""

    def wake(self, name: str) -> None:
        """Instead of `prepare`: the desktop goes on where a snapshot was taken."""


@dataclass(frozen=True, slots=True)
class EnvironmentRequest:
    """What kind of environment is wanted; one with an equal request serves the next trajectory."""

    provider: str
    screen: tuple[int, int]
    """Width and height, pixels."""
    holder: str
    """Who asks, for leases and for people: worker and thread."""
    knobs: ProviderSection = NO_KNOBS
    """The provider's own section of the config, `desktops.PROVIDER`."""
    key: str = field(default="", compare=False)
    """Names the trajectory, the same at every attempt: who waits in a queue keeps its place by it."""
    machine_knobs: ProviderSection = NO_KNOBS
    """Of the provider whose desktops this one drives (`knobs.machine_provider`)."""
    reads: Reads = NOTHING
    """Texts that come with every screenshot."""

    @classmethod
    def of(
        cls,
        config: DesktopConfig,
        screen: tuple[int, int],
        *,
        holder: str,
        key: str,
        reads: Reads = NOTHING,
    ) -> EnvironmentRequest:
        """The request of an experiment's desktops."""
        knobs = config.provider_section
        machine_knobs = config.section_of(knobs.machine_provider)
        return cls(config.provider, screen, holder, knobs, key, machine_knobs, reads)
