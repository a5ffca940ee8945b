"""Actions as UI-TARS' action text."""

from training.actions.dialects.ui_tars.parse import SCROLL_NOTCHES, WAIT_S
from training.actions.pointer_words import UI_TARS_POINTER
from training.actions.write.json_call import WritePoint, direction_and_amount
from training.actions.write.unsaid_parts import require_words
from training.contracts.types import Action, ActionKind


def ui_tars_call(action: Action, point: WritePoint) -> str:
    """The completion that does `action`. Raises ValueError when the dialect has no words for it."""
    require_words(action, "ui-tars")
    return f"Action: {_call(action, point)}"


def _call(action: Action, point: WritePoint) -> str:
    if action.kind in UI_TARS_POINTER:
        return f"{UI_TARS_POINTER[action.kind]}(start_box={_box(action, action.x, action.y, point)})"
    match action.kind:
        case ActionKind.DRAG:
            start, end = (
                _box(action, action.x, action.y, point),
                _box(action, action.to_x, action.to_y, point),
            )
            return f"drag(start_box={start}, end_box={end})"
        case ActionKind.SCROLL:
            return _scroll(action, point)
        case ActionKind.TYPE:
            return f"type(content={action.text or ''!r})"
        case ActionKind.KEY:
            return f"hotkey(key={' '.join(action.keys)!r})"
        case ActionKind.KEY_DOWN | ActionKind.KEY_UP if len(action.keys) == 1:
            name = "press" if action.kind is ActionKind.KEY_DOWN else "release"
            return f"{name}(key={action.keys[0]!r})"
        case ActionKind.WAIT if action.seconds == WAIT_S:
            return "wait()"
        case ActionKind.TERMINATE:
            is_done = action.status != "failure"
            return f"finished(content={action.text or ''!r})" if is_done else "call_user()"
    raise ValueError(f"the ui-tars dialect has no word for this {action.kind.value}")


def _scroll(action: Action, point: WritePoint) -> str:
    direction, amount = direction_and_amount(action)
    if amount != SCROLL_NOTCHES:
        raise ValueError(f"the ui-tars dialect scrolls {SCROLL_NOTCHES} notches at once")
    where = "" if action.x is None else f"start_box={_box(action, action.x, action.y, point)}, "
    return f"scroll({where}direction='{direction}')"


def _box(action: Action, x: int | None, y: int | None, point: WritePoint) -> str:
    if x is None or y is None:
        raise ValueError(f"the ui-tars dialect needs every point of a {action.kind.value}")
    across, down = point(x, y)
    return f"'({across},{down})'"
