"""Actions as the Python that DesktopEnv runs in the desktop."""

import pytest

from training.contracts.config import DesktopConfig, parse_config
from training.contracts.types import Action, ActionKind
from workers.environments.osworld.environment import action_code


@pytest.mark.parametrize(
    ("action", "python"),
    [
        (Action(kind=ActionKind.CLICK, x=3, y=4), "pyautogui.click(3, 4)"),
        (Action(kind=ActionKind.CLICK), "pyautogui.click()"),
        (Action(kind=ActionKind.RIGHT_CLICK, x=3, y=4), "pyautogui.rightClick(3, 4)"),
        (Action(kind=ActionKind.MOVE, x=3, y=4), "pyautogui.moveTo(3, 4)"),
        (
            Action(kind=ActionKind.DRAG, x=1, y=2, to_x=3, to_y=4),
            "pyautogui.moveTo(1, 2); pyautogui.dragTo(3, 4, duration=0.5, button='left')",
        ),
        (Action(kind=ActionKind.SCROLL, x=3, y=4, scroll_y=2), "pyautogui.scroll(-2, 3, 4)"),
        (Action(kind=ActionKind.SCROLL, scroll_x=1), "pyautogui.hscroll(1)"),
        (Action(kind=ActionKind.KEY, keys=("ctrl", "s")), "pyautogui.hotkey('ctrl', 's')"),
        (Action(kind=ActionKind.KEY, keys=("Page_Up",)), "pyautogui.hotkey('pageup')"),
        (Action(kind=ActionKind.TYPE, text="it's\n"), 'pyautogui.write("it\'s\\n")'),
        (
            Action(kind=ActionKind.TYPE, text="a<b"),
            "pyautogui.write('a'); pyautogui.hotkey('shift', ','); pyautogui.write('b')",
        ),
        (Action(kind=ActionKind.TYPE, text=""), "pass"),
        (Action(kind=ActionKind.WAIT, seconds=2), "WAIT"),
    ],
)
def test_every_kind_of_action_is_said_in_pyautogui(action, python):
    assert action_code(action) == python
    compile(python, "action", "exec")


def test_what_the_agent_types_cannot_become_code():
    text = "'); import os; os.system('x"
    tree = compile(action_code(Action(kind=ActionKind.TYPE, text=text)), "action", "exec")
    assert "os" not in tree.co_names


def test_the_provider_and_its_machines_are_chosen_in_the_config():
    config = parse_config({"desktops": {"provider": "osworld", "osworld": {"machines": "docker"}}})
    assert config.desktops.osworld.machines == "docker"
    assert DesktopConfig().osworld.machines == "x11"
