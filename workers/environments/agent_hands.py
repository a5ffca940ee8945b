"""What an agent does with keyboard and pointer: its actions in order, and nothing held at a hand-over."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from training.actions.coordinates import off_screen_error
from training.actions.held_input import HeldInput
from training.contracts.types import Action, ActionKind
from workers.desktops.contract import EnvError, ErrorKind


class Acting(Protocol):
    """The part of an environment that is used here."""

    def act(self, action: Action) -> None:
        """Raises EnvError; of kind task = refused."""


@dataclass(frozen=True, slots=True)
class Done:
    """What became of the actions of one turn."""

    tried: tuple[Action, ...] = ()
    """All of them; with an error, up to the one that was refused."""
    error: str | None = None

    @property
    def last(self) -> Action | None:
        """The last one that was tried; `terminate` only where nothing before it was refused."""
        return self.tried[-1] if self.tried else None


class AgentHands:
    """Does the actions of one episode's agent."""

    def __init__(self, environment: Acting) -> None:
        self._environment = environment
        self._held = HeldInput()

    def note(self, actions: Iterable[Action]) -> None:
        """These were done before, on the same desktop."""
        self._held.note(actions)

    def do(self, actions: Sequence[Action], screen: tuple[int, int]) -> Done:
        """One by one. What the desktop refuses is the agent's mistake: the rest is left, all is let go.

        `screen`: the picture's size, which a program may have changed. Raises EnvError of other kinds.
        """
        for number, action in enumerate(actions, 1):
            mistake = off_screen_error(action, screen) or self._mistake(action)
            if mistake is not None:
                self.let_go()
                place = f"action {number} of {len(actions)}: " if len(actions) > 1 else ""
                return Done(tuple(actions[:number]), place + mistake)
        return Done(tuple(actions))

    def let_go(self) -> None:
        """Every key and button that the agent holds is up afterwards."""
        for release in self._held.take_releases():
            self._mistake(release)

    def _mistake(self, action: Action) -> str | None:
        """Do it; why the desktop refuses it, None when it does not."""
        if action.kind is ActionKind.TERMINATE:
            return None
        self._held.note([action])
        try:
            self._environment.act(action)
        except EnvError as error:
            if error.kind is not ErrorKind.TASK:
                raise
            return str(error)
        return None
