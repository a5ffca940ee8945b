"""An action as lines of pyautogui code, as few as say it: what readers of completions join again."""

from training.actions.write.json_call import WritePoint, short_number
from training.actions.write.pyautogui_call import key_calls, key_of, point_text, pyautogui_call
from training.contracts.types import Action, ActionKind

K = ActionKind


def pyautogui_lines(action: Action, point: WritePoint) -> list[str]:
    """Calls, or one control word. Raises ValueError when there are none."""
    if action.modifiers:
        return held(action.modifiers, pyautogui_lines(action.model_copy(update={"modifiers": ()}), point))
    if action.kind is K.KEY and action.seconds:
        return held(action.keys, [f"time.sleep({short_number(action.seconds)})"])
    if action.kind is K.DRAG and action.x is not None:
        end = action.model_copy(update={"x": None, "y": None})
        return [f"pyautogui.moveTo({point_text(action.x, action.y, point)})", *pyautogui_lines(end, point)]
    if action.kind is K.PASTE:
        return [f"pyperclip.copy({action.text!r})", "pyautogui.hotkey('ctrl', 'v')"]
    if action.kind in (K.KEY_DOWN, K.KEY_UP):
        return key_calls(action)
    return [pyautogui_call(action, point)]


def held(keys: tuple[str, ...], lines: list[str]) -> list[str]:
    """The lines while `keys` are down."""
    down = [f"pyautogui.keyDown({key_of(key)!r})" for key in keys]
    return [*down, *lines, *(f"pyautogui.keyUp({key_of(key)!r})" for key in reversed(keys))]
