"""A desktop that takes pyautogui code does what the action says."""

import re

from hypothesis import assume, given, settings

from testing.training.every_action import EVERY_KIND, SCREEN, K, is_diagonal
from training.actions.write.pyautogui_program import pyautogui_code
from training.contracts.types import Action
from workers.env_server.step_actions import read_program


@settings(max_examples=400)
@given(EVERY_KIND)
def test_a_desktop_that_takes_pyautogui_does_what_the_action_says(action):
    assume(action.kind is not K.TERMINATE)
    done = read_program(pyautogui_code(action), SCREEN, pause_s=0.0)
    assert done == calls_of(action)


def calls_of(action: Action) -> list[Action]:
    """What pyautogui does one after the other for one action."""
    if action.modifiers:
        held = [Action(kind=K.KEY_DOWN, keys=(key,)) for key in action.modifiers]
        released = [Action(kind=K.KEY_UP, keys=(key,)) for key in reversed(action.modifiers)]
        return [*held, *calls_of(action.model_copy(update={"modifiers": ()})), *released]
    if action.kind in (K.KEY_DOWN, K.KEY_UP):
        return [Action(kind=action.kind, keys=(key,)) for key in action.keys]
    if action.kind is K.KEY and action.seconds:
        held = [Action(kind=K.KEY_DOWN, keys=(key,)) for key in action.keys]
        released = [Action(kind=K.KEY_UP, keys=(key,)) for key in reversed(action.keys)]
        return [*held, Action(kind=K.WAIT, seconds=action.seconds), *released]
    if action.kind is K.KEY and action.presses > 1 and len(action.keys) > 1:
        held = [Action(kind=K.KEY_DOWN, keys=(key,)) for key in action.keys[:-1]]
        released = [Action(kind=K.KEY_UP, keys=(key,)) for key in reversed(action.keys[:-1])]
        return [*held, action.model_copy(update={"keys": action.keys[-1:]}), *released]
    if action.kind is K.DRAG and action.x is not None:
        return [Action(kind=K.MOVE, x=action.x, y=action.y), action.model_copy(update={"x": None, "y": None})]
    if is_diagonal(action):
        return [action.model_copy(update={"scroll_x": 0}), action.model_copy(update={"scroll_y": 0})]
    if action.kind is K.TYPE:
        less = Action(kind=K.KEY, keys=("shift", ","))
        parts = re.split("(<)", action.text or "")
        return [less if part == "<" else Action(kind=K.TYPE, text=part) for part in parts if part]
    return [action]
