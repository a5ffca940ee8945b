"""Dialect opencua: pyautogui code with x= and y=, and functions computer.NAME, in the last code block.

## Action:
Click the button.

## Code:
```python
pyautogui.click(x=350, y=720)
```
"""

from training.actions.dialects.contract import MAX_ACTION_WORDS, Dialect, action_line
from training.actions.dialects.opencua.layout import task_last
from training.actions.parse import pyautogui_call as reader
from training.actions.parse.pyautogui_functions import OPENCUA_WAIT_S
from training.actions.write.json_call import WritePoint
from training.actions.write.pyautogui_call import point_text
from training.actions.write.pyautogui_lines import pyautogui_lines
from training.actions.write.tool_call import WORDS
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action, ActionKind

FACTOR = 28
SECTION = "## Action:"
PROMPT = """You operate a desktop computer. Every message shows you the current screen.
Answer in sections, the last of them one action as Python code:
## Thought:
what you see and plan
## Action:
what you do, in one sentence
## Code:
```python
pyautogui.click(x=..., y=...)
```

Calls: pyautogui.click, rightClick, doubleClick, moveTo and dragTo with x and y; pyautogui.scroll(n), \
positive is up; pyautogui.write('...'); pyautogui.press('down', presses=3); pyautogui.hotkey('ctrl', 's'); \
computer.tripleClick(x=..., y=...); computer.wait(); computer.terminate(status='success') or 'failure'.

{coordinates}"""


def opencua_code(action: Action, point: WritePoint) -> str:
    """The completion that does `action`. Raises ValueError when there is no code for it."""
    fence = "code" if action.kind in (ActionKind.TERMINATE, ActionKind.WAIT) else "python"
    code = "\n".join(_lines(action, point))
    return f"{SECTION}\n{WORDS[action.kind]}\n\n## Code:\n```{fence}\n{code}\n```"


def _lines(action: Action, point: WritePoint) -> list[str]:
    if action.text and "```" in action.text:
        raise ValueError("the opencua dialect cannot type the mark of a code block")
    match action.kind:
        case ActionKind.TERMINATE:
            answer = f", answer={action.text!r}" if action.text else ""
            return [f"computer.terminate(status={action.status or 'success'!r}{answer})"]
        case ActionKind.WAIT:
            return [
                "computer.wait()" if action.seconds == OPENCUA_WAIT_S else f"time.sleep({action.seconds})"
            ]
        case ActionKind.TRIPLE_CLICK if not action.modifiers:
            return [f"computer.tripleClick({point_text(action.x, action.y, point)})"]
    return pyautogui_lines(action, point)


def said_action(completion: str) -> str:
    """The words of the section Action."""
    _, opened, rest = completion.partition(SECTION)
    words = " ".join(rest.partition("##")[0].split())
    return words[:MAX_ACTION_WORDS] if opened and words else action_line(completion)


OPENCUA = Dialect(
    name="opencua",
    of="OpenCUA, EvoCUA's code form",
    start=reader.start,
    parse=reader.parse,
    write=opencua_code,
    prompt=PROMPT,
    point_form="x and y",
    space=CoordinateSpace.RESIZED,
    factor=FACTOR,
    layout=task_last,
    words=said_action,
)
