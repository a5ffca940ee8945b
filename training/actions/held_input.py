"""Which keys and buttons an agent holds, and the actions that let go of them."""

from collections.abc import Iterable

from training.contracts.action import Action, ActionKind, Button


class HeldInput:
    """What is down after the actions that it was shown, in press order."""

    def __init__(self) -> None:
        self._keys: dict[str, None] = {}
        self._buttons: dict[Button, None] = {}

    def note(self, actions: Iterable[Action]) -> None:
        """These were done, or tried."""
        for action in actions:
            match action.kind:
                case ActionKind.KEY_DOWN:
                    self._keys.update(dict.fromkeys(action.keys))
                case ActionKind.KEY_UP:
                    for key in action.keys:
                        self._keys.pop(key, None)
                case ActionKind.MOUSE_DOWN:
                    self._buttons[action.button] = None
                case ActionKind.MOUSE_UP:
                    self._buttons.pop(action.button, None)

    def take_releases(self) -> list[Action]:
        """The actions after which nothing is held; from now on it counts as up."""
        keys, buttons = [*self._keys], [*self._buttons]
        self._keys.clear()
        self._buttons.clear()
        return [
            *(Action(kind=ActionKind.MOUSE_UP, button=button) for button in reversed(buttons)),
            *(Action(kind=ActionKind.KEY_UP, keys=(key,)) for key in reversed(keys)),
        ]
