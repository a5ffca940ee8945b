"""Dialect pyautogui: pyautogui.click(350, 720), bare or in a code block; DONE."""

from training.actions.dialects.contract import Dialect
from training.actions.parse import pyautogui_call as reader
from training.actions.write.json_call import WritePoint
from training.actions.write.pyautogui_lines import pyautogui_lines
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action

PROMPT = """You operate a desktop computer. Every message shows you the current screen.
Think briefly if you must, then answer with one action as Python code in a code block:
```python
pyautogui.click(x, y)
```

Calls, with literal arguments only:
pyautogui.click(x, y)  press the left mouse button; also rightClick, middleClick, doubleClick, tripleClick
pyautogui.moveTo(x, y)  move the pointer; with pyautogui.dragTo(x, y) on the next line, drag from there
pyautogui.scroll(n)  turn the wheel n notches, positive is up; pyautogui.hscroll(n), positive is right
pyautogui.write('...')  type text; pyautogui.press('enter', presses=1)  press a key
pyautogui.hotkey('ctrl', 's')  press a chord
WAIT alone lets the computer work, DONE says that the task is done, FAIL that it cannot be done.

{coordinates}
Look at the new screen after every action before you decide that the task is done."""


def pyautogui_code(action: Action, point: WritePoint) -> str:
    """The code, or control word, that says `action`. Raises ValueError when there is none."""
    return "\n".join(pyautogui_lines(action, point))


PYAUTOGUI = Dialect(
    name="pyautogui",
    of="OSWorld's and AReaL's agents",
    start=reader.start,
    parse=reader.parse,
    write=pyautogui_code,
    prompt=PROMPT,
    point_form="x, y",
    space=CoordinateSpace.SCREEN,
    names_marks=True,
    is_tried=True,
)
