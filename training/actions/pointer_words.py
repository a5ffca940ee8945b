"""The words of pointer actions in each dialect; parsers and writers share them."""

from training.contracts.types import ActionKind

JSON_POINTER: dict[ActionKind, str] = {
    ActionKind.CLICK: "left_click",
    ActionKind.RIGHT_CLICK: "right_click",
    ActionKind.MIDDLE_CLICK: "middle_click",
    ActionKind.DOUBLE_CLICK: "double_click",
    ActionKind.TRIPLE_CLICK: "triple_click",
    ActionKind.MOVE: "mouse_move",
}
PYAUTOGUI_POINTER: dict[ActionKind, str] = {
    ActionKind.CLICK: "click",
    ActionKind.DOUBLE_CLICK: "doubleClick",
    ActionKind.TRIPLE_CLICK: "tripleClick",
    ActionKind.RIGHT_CLICK: "rightClick",
    ActionKind.MIDDLE_CLICK: "middleClick",
    ActionKind.MOVE: "moveTo",
    ActionKind.MOUSE_DOWN: "mouseDown",
    ActionKind.MOUSE_UP: "mouseUp",
}
SINGLE_BUTTONS: dict[ActionKind, str] = {
    ActionKind.CLICK: "left",
    ActionKind.RIGHT_CLICK: "right",
    ActionKind.MIDDLE_CLICK: "middle",
}
"""The clicks that can be counted, and their buttons."""
TAG_POINTER: dict[ActionKind, str] = {
    ActionKind.CLICK: "click",
    ActionKind.DOUBLE_CLICK: "doubleclick",
    ActionKind.RIGHT_CLICK: "rightclick",
    ActionKind.MOVE: "move",
}
UI_TARS_POINTER: dict[ActionKind, str] = {
    ActionKind.CLICK: "click",
    ActionKind.DOUBLE_CLICK: "left_double",
    ActionKind.RIGHT_CLICK: "right_single",
    ActionKind.MOVE: "hover",
}
DIRECTIONS = {"down": (0, 1), "up": (0, -1), "right": (1, 0), "left": (-1, 0)}
"""Word -> one notch of the wheel as (scroll_x, scroll_y)."""
