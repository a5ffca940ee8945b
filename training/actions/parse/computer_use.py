"""The arguments of a computer_use tool, as the models that were trained with one write them.

{"action": "left_click", "coordinate": [350, 720]}    {"action": "key", "keys": ["ctrl", "s"]}

The names of Qwen's, EvoCUA's, GUI-Owl's and Anthropic's tools mean the same, so all of them are read.
"""

from collections.abc import Callable
from typing import Any

from training.actions.errors import ActionTextError
from training.actions.key_names import MODIFIERS, chord, key_list
from training.actions.parse.argument_values import (
    Points,
    button_of,
    count,
    listed,
    notches,
    scroll,
    seconds,
    status_of,
    typed_text,
)
from training.actions.parse.call_blocks import Arguments
from training.actions.pointer_words import JSON_POINTER
from training.contracts.action import MAX_PRESSES, Action, ActionKind

K = ActionKind
DESCRIPTIONS = frozenset(
    {"description", "desc", "element", "element_description", "target", "label", "reason", "reasoning"}
    | {"thought", "thoughts", "note", "comment", "explanation", "intent", "summary", "conclusion", "title"}
)
"""Arguments that say in words what an action is for; they change nothing."""
SCREENSHOT_S = 0.1
"""A call that only looks waits so long: every turn ends with a screenshot."""
HOLD = ("hold_s", "seconds", "duration", "time")
Build = Callable[[Arguments, Points], tuple[Action, ...]]


def actions_of(arguments: Arguments, points: Points) -> tuple[Action, ...]:
    """Typed actions of a call's arguments; unknown actions and arguments are refused."""
    name = arguments.get("action")
    if not isinstance(name, str):
        raise ActionTextError('the call has no "action"')
    key = action_name(name)
    row = ACTIONS.get(key)
    if row is None:
        raise ActionTextError(f"unknown action {name[:40]!r}")
    build, allowed = row
    known = {key: value for key, value in arguments.items() if value is not None and key not in DESCRIPTIONS}
    unknown = known.keys() - allowed - {"action"}
    if unknown:
        raise ActionTextError(f"{key} takes no {min(unknown)[:40]!r}")
    return build(known | {"action": key}, points)


def action_of(arguments: Arguments, points: Points) -> Action:
    """The one action of a call's arguments."""
    actions = actions_of(arguments, points)
    if len(actions) > 1:
        raise ActionTextError(f"the call means {len(actions)} actions")
    return actions[0]


def action_name(name: str) -> str:
    """The name of an action without the differences of spelling."""
    plain = name.strip().lower().replace(" ", "_").replace("-", "_")
    return ALIASES.get(plain.replace("_", ""), plain)


def _place(arguments: Arguments, points: Points, key: str = "coordinate") -> tuple[int | None, int | None]:
    """The point of this name; (None, None) is where the pointer is."""
    return points.pair(arguments[key], key) if key in arguments else (None, None)


def _modifiers(arguments: Arguments) -> tuple[str, ...]:
    """Keys held during a click or scroll; Anthropic's tool names them by `text`."""
    value = arguments.get("modifiers", arguments.get("keys", arguments.get("text")))
    if value is None:
        return ()
    keys = key_list(listed(value))
    if other := [key for key in keys if key not in MODIFIERS]:
        raise ActionTextError(f"{arguments['action']} holds modifiers only, and {other[0]!r} is none")
    return keys


def _at_point(kind: ActionKind, *, needs_point: bool = False) -> Build:
    def build(arguments: Arguments, points: Points) -> tuple[Action, ...]:
        x, y = _place(arguments, points)
        if x is None and needs_point:
            raise ActionTextError(f"{kind.value} needs a coordinate")
        parts: dict[str, Any] = {"modifiers": held} if (held := _modifiers(arguments)) else {}
        if "presses" in arguments:
            parts["presses"] = count(arguments["presses"], "presses", MAX_PRESSES)
        return (Action(kind=kind, x=x, y=y, **parts),)

    return build


def _drag(arguments: Arguments, points: Points) -> tuple[Action, ...]:
    """The start is start_coordinate or coordinate, the end is end_coordinate, coordinate2 or coordinate."""
    ends = [key for key in ("end_coordinate", "coordinate2", "coordinate") if key in arguments]
    if not ends:
        raise ActionTextError("left_click_drag needs a coordinate")
    starts = [key for key in ("start_coordinate", "coordinate") if key in arguments and key != ends[0]]
    if len(ends) + ("start_coordinate" in arguments) > 2:
        raise ActionTextError("left_click_drag takes one start and one end")
    to_x, to_y = _place(arguments, points, ends[0])
    x, y = _place(arguments, points, starts[0]) if starts else (None, None)
    held = _modifiers({key: arguments[key] for key in ("action", "modifiers") if key in arguments})
    drag = Action(kind=K.DRAG, x=x, y=y, to_x=to_x, to_y=to_y, button=button_of(arguments), modifiers=held)
    return (drag,)


def _scroll(arguments: Arguments, points: Points) -> tuple[Action, ...]:
    """Either direction and amount (default 3 notches), or Qwen's `pixels` (positive is up)."""
    x, y = _place(arguments, points)
    held = _modifiers(arguments)
    if "pixels" in arguments:
        amount = notches(arguments["pixels"])
        across = arguments["action"] == "hscroll"
        found = Action(kind=K.SCROLL, x=x, y=y, scroll_x=amount * across, scroll_y=-amount * (not across))
    else:
        direction = arguments.get("direction", arguments.get("scroll_direction"))
        amount = notches(arguments.get("amount", arguments.get("scroll_amount", 3)))
        found = scroll(direction, amount, x, y)
    return (found.model_copy(update={"modifiers": held}) if held else found,)


def _type(arguments: Arguments, points: Points) -> tuple[Action, ...]:
    """GUI-Owl's `clear` empties the field first, its `enter` presses Return after the text."""
    text = typed_text(arguments.get("text"))
    before = (
        Action(kind=K.KEY, keys=("ctrl", "a")),
        Action(kind=K.KEY, keys=("BackSpace",)),
    )
    is_sent = bool(_flag(arguments, "enter")) and not text.endswith("\n")
    typed = Action(kind=K.TYPE, text=text + "\n" * is_sent)
    return (*before, typed) if _flag(arguments, "clear") else (typed,)


def _flag(arguments: Arguments, key: str) -> bool:
    value = arguments.get(key, False)
    if value in (True, False, "0", "1", "true", "false", "True", "False"):
        return value in (True, "1", "true", "True")
    raise ActionTextError(f"{key} must be 0 or 1")


def _paste(arguments: Arguments, points: Points) -> tuple[Action, ...]:
    return (Action(kind=K.PASTE, text=typed_text(arguments.get("text"))),)


def _keys(arguments: Arguments) -> tuple[str, ...]:
    value = next((arguments[key] for key in ("keys", "key", "text") if key in arguments), None)
    value = listed(value)
    if not isinstance(value, (str, list)) or value == "":
        raise ActionTextError("keys must be a list of key names")
    return key_list(value)


def _key(arguments: Arguments, points: Points) -> tuple[Action, ...]:
    parts: dict[str, Any] = {}
    times = arguments.get("presses", arguments.get("repeat"))
    if times is not None:
        parts["presses"] = count(times, "presses", MAX_PRESSES)
    held = next((arguments[key] for key in HOLD if key in arguments), None)
    if held is not None:
        parts["seconds"] = seconds(held)
    return (Action(kind=K.KEY, keys=chord(_keys(arguments)), **parts),)


def _half(kind: ActionKind) -> Build:
    """Keys that go down and stay down, or up again."""
    return lambda arguments, points: (Action(kind=kind, keys=chord(_keys(arguments))),)


def _button(kind: ActionKind) -> Build:
    def build(arguments: Arguments, points: Points) -> tuple[Action, ...]:
        x, y = _place(arguments, points)
        return (Action(kind=kind, x=x, y=y, button=button_of(arguments)),)

    return build


def _wait(arguments: Arguments, points: Points) -> tuple[Action, ...]:
    default = SCREENSHOT_S if arguments["action"] == "screenshot" else 1.0
    value = next((arguments[key] for key in ("time", "seconds", "duration") if key in arguments), default)
    return (Action(kind=K.WAIT, seconds=seconds(value)),)


def _terminate(arguments: Arguments, points: Points) -> tuple[Action, ...]:
    """`done` and `fail` say their status by their name, `answer` has a text."""
    default = "failure" if arguments["action"] == "fail" else "success"
    status = status_of(arguments.get("status", default))
    text = arguments.get("text", arguments.get("answer"))
    if text is None and arguments["action"] != "answer":
        return (Action(kind=K.TERMINATE, status=status),)
    return (Action(kind=K.TERMINATE, status=status, text=typed_text(text)),)


_POINT = frozenset({"coordinate", "modifiers", "keys", "text"})
_SCROLL = _POINT | {"direction", "amount", "pixels", "scroll_direction", "scroll_amount"}
_DRAG = frozenset({"coordinate", "start_coordinate", "end_coordinate", "coordinate2"})
_KEYS = frozenset({"keys", "key", "text"})
_TIMES = frozenset({"presses", "repeat", *HOLD})
_WAIT = frozenset({"time", "seconds", "duration"})
_END = frozenset({"status", "text", "answer"})
ACTIONS: dict[str, tuple[Build, frozenset[str]]] = {
    **{name: (_at_point(kind), _POINT | {"presses"}) for kind, name in JSON_POINTER.items()},
    "mouse_move": (_at_point(K.MOVE, needs_point=True), frozenset({"coordinate"})),
    "left_click_drag": (_drag, _DRAG | {"button", "modifiers", "duration"}),
    "scroll": (_scroll, _SCROLL),
    "hscroll": (_scroll, _SCROLL),
    "type": (_type, frozenset({"text", "clear", "enter"})),
    "paste": (_paste, frozenset({"text"})),
    "key": (_key, _KEYS | _TIMES),
    "key_down": (_half(K.KEY_DOWN), _KEYS),
    "key_up": (_half(K.KEY_UP), _KEYS),
    "left_mouse_down": (_button(K.MOUSE_DOWN), frozenset({"coordinate"})),
    "left_mouse_up": (_button(K.MOUSE_UP), frozenset({"coordinate"})),
    "mouse_down": (_button(K.MOUSE_DOWN), frozenset({"coordinate", "button"})),
    "mouse_up": (_button(K.MOUSE_UP), frozenset({"coordinate", "button"})),
    "wait": (_wait, _WAIT),
    "screenshot": (_wait, frozenset()),
    "terminate": (_terminate, _END),
    "done": (_terminate, _END),
    "fail": (_terminate, _END),
    "answer": (_terminate, _END),
}
"""Whitelist: action name -> (builder, allowed arguments)."""
ALIASES = {
    **{name.replace("_", ""): name for name in ACTIONS},
    "click": "left_click",
    "rightclick": "right_click",
    "doubleclick": "double_click",
    "tripleclick": "triple_click",
    "middleclick": "middle_click",
    "move": "mouse_move",
    "moveto": "mouse_move",
    "drag": "left_click_drag",
    "hotkey": "key",
    "holdkey": "key",
    "keydown": "key_down",
    "keyup": "key_up",
    "finished": "done",
}
"""Spelling without underscores -> the action's name."""
