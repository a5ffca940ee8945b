"""The actions of one turn are done in order; a refused one ends them, and nothing stays held."""

import pytest

from training.actions.held_input import HeldInput
from training.contracts.types import Action
from workers.desktops.contract import EnvError, ErrorKind
from workers.environments.agent_hands import AgentHands

SCREEN = (640, 480)
SHIFT_DOWN, SHIFT_UP = (Action(kind=kind, keys=("shift",)) for kind in ("key_down", "key_up"))
CLICK = Action(kind="click", x=1, y=2)
OFF = Action(kind="click", x=900, y=2)
DONE = Action(kind="terminate", status="success")


class Desktop:
    def __init__(self, refuses: Action | None = None, kind: ErrorKind = ErrorKind.TASK) -> None:
        self.done: list[Action] = []
        self._refuses, self._kind = refuses, kind

    def act(self, action: Action) -> None:
        if action == self._refuses:
            raise EnvError("no such thing", kind=self._kind)
        self.done.append(action)


def test_a_turn_is_done_in_order_and_its_end_is_no_action_of_the_desktop():
    desktop = Desktop()
    done = AgentHands(desktop).do([SHIFT_DOWN, CLICK, SHIFT_UP, DONE], SCREEN)
    assert desktop.done == [SHIFT_DOWN, CLICK, SHIFT_UP]
    assert (done.error, done.last) == (None, DONE)


@pytest.mark.parametrize("refused", [OFF, CLICK])
def test_a_refused_action_ends_the_turn_and_lets_go(refused):
    desktop = Desktop(refuses=CLICK)
    done = AgentHands(desktop).do([SHIFT_DOWN, refused, SHIFT_UP, DONE], SCREEN)
    assert desktop.done == [SHIFT_DOWN, SHIFT_UP]
    assert done.tried == (SHIFT_DOWN, refused)
    assert done.error.startswith("action 2 of 4: ")


def test_a_refused_action_alone_says_only_why():
    assert AgentHands(Desktop(refuses=CLICK)).do([CLICK], SCREEN).error == "no such thing"


def test_a_lost_desktop_is_no_mistake_of_the_agent():
    with pytest.raises(EnvError):
        AgentHands(Desktop(refuses=CLICK, kind=ErrorKind.INFRA)).do([CLICK], SCREEN)


def test_what_is_held_over_turns_is_let_go_once():
    desktop = Desktop()
    hands = AgentHands(desktop)
    hands.note([Action(kind="key_down", keys=("ctrl", "a"))])  # on the parent's desktop, before a branch
    hands.do([Action(kind="mouse_down", x=1, y=2, button="right")], SCREEN)
    desktop.done.clear()
    hands.let_go()
    hands.let_go()
    assert desktop.done == [
        Action(kind="mouse_up", button="right"),
        Action(kind="key_up", keys=("a",)),
        Action(kind="key_up", keys=("ctrl",)),
    ]


def test_what_was_let_go_is_not_let_go_again():
    held = HeldInput()
    held.note([SHIFT_DOWN, SHIFT_UP, Action(kind="mouse_down"), Action(kind="mouse_up")])
    assert held.take_releases() == []
