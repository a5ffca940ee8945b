"""Hypothesis strategy of actions: every kind, with every part that it can have; and what writers can say."""

from hypothesis import strategies as st

from training.actions.key_names import NAMED
from training.actions.write.unsaid_parts import newer_parts
from training.contracts.action import MODIFIER_NAMES
from training.contracts.types import Action, ActionKind

SCREEN = (1280, 720)
K = ActionKind
AT = {"x": st.integers(0, SCREEN[0] - 1), "y": st.integers(0, SCREEN[1] - 1)}
TO = {"to_x": AT["x"], "to_y": AT["y"]}
NOTCHES = st.integers(-50, 50)
SIGNS = [*"\n\t<'\"\\{}()- ", "</s>", "<|im_end|>", "pyautogui.click("]
TAGS = ["<action>", "</action>", "<tool_call>", "</tool_call>", "<answer>", "</answer>", "</think>", "```"]
CHARACTER = st.one_of(st.sampled_from(SIGNS + TAGS), st.characters(exclude_categories=["Cs", "Cc"]))
TEXT = st.lists(CHARACTER, min_size=1, max_size=20).map("".join)
CHARACTERS = st.characters(min_codepoint=33, max_codepoint=0x2FF).filter(str.isprintable)
KEYS = st.lists(st.one_of(st.sampled_from(sorted(NAMED)), CHARACTERS), min_size=1, max_size=5).map(tuple)
POINTER_KINDS = st.sampled_from(
    [K.CLICK, K.DOUBLE_CLICK, K.TRIPLE_CLICK, K.RIGHT_CLICK, K.MIDDLE_CLICK, K.MOVE]
)
CLICK_KINDS = st.sampled_from([K.CLICK, K.DOUBLE_CLICK, K.TRIPLE_CLICK, K.RIGHT_CLICK, K.MIDDLE_CLICK])
COUNTED_KINDS = st.sampled_from([K.CLICK, K.RIGHT_CLICK, K.MIDDLE_CLICK])
BUTTONS = st.sampled_from(["left", "middle", "right"])
HELD = st.lists(st.sampled_from(MODIFIER_NAMES), min_size=1, unique=True).map(tuple)


def actions(kind, **parts):
    return st.builds(Action, kind=kind if hasattr(kind, "map") else st.just(kind), **parts)


EVERY_KIND = st.one_of(
    actions(POINTER_KINDS),
    actions(POINTER_KINDS, **AT),
    actions(CLICK_KINDS, **AT, modifiers=HELD),
    actions(COUNTED_KINDS, **AT, presses=st.integers(4, 100)),
    actions(K.DRAG, **TO),
    actions(K.DRAG, **AT, **TO),
    actions(K.DRAG, **AT, **TO, modifiers=HELD, button=BUTTONS),
    actions(K.SCROLL, scroll_y=NOTCHES, modifiers=HELD, **AT),
    actions(K.SCROLL, scroll_x=NOTCHES),
    actions(K.SCROLL, scroll_y=NOTCHES, **AT),
    actions(K.SCROLL, scroll_x=NOTCHES, **AT),
    actions(K.SCROLL, scroll_x=NOTCHES, scroll_y=NOTCHES),
    actions(K.TYPE, text=TEXT),
    actions(K.KEY, keys=KEYS),
    actions(K.KEY, keys=KEYS, presses=st.integers(2, 100)),
    actions(K.KEY, keys=KEYS, seconds=st.floats(0.1, 60)),
    actions(st.sampled_from([K.KEY_DOWN, K.KEY_UP]), keys=KEYS),
    actions(st.sampled_from([K.MOUSE_DOWN, K.MOUSE_UP]), button=BUTTONS),
    actions(st.sampled_from([K.MOUSE_DOWN, K.MOUSE_UP]), button=BUTTONS, **AT),
    actions(K.PASTE, text=TEXT),
    actions(K.WAIT, seconds=st.floats(0, 60)),
    actions(K.TERMINATE, status=st.sampled_from(["success", "failure"])),
    actions(K.TERMINATE, status=st.just("success"), text=TEXT),
)
"""Every kind of action with every part that it can have."""
CLICKS = {K.CLICK, K.RIGHT_CLICK, K.MIDDLE_CLICK, K.DOUBLE_CLICK}
POINTED = {*CLICKS, K.TRIPLE_CLICK, K.MOVE}
STAYS = {K.KEY_DOWN, K.KEY_UP, K.MOUSE_DOWN, K.MOUSE_UP, K.PASTE}
"""What several dialects have no words for."""


def is_diagonal(action: Action) -> bool:
    return bool(action.scroll_x and action.scroll_y)


def is_answer(action: Action) -> bool:
    return action.kind is K.TERMINATE and action.text is not None


def in_json(a: Action) -> bool:
    return not is_diagonal(a) and (a.kind is not K.MOVE or a.x is not None)


def in_tool(a: Action) -> bool:
    return in_json(a) and (a.kind is not K.DRAG or a.x is None)


def in_code(a: Action) -> bool:
    return not is_diagonal(a) and (len(a.keys) < 2 or a.presses == 1)


def by_keyboard(a: Action) -> bool:
    is_typed = a.kind in (K.TYPE, K.KEY, K.WAIT) or (
        a.kind is K.TERMINATE and a.status == "success" and not a.text
    )
    return is_typed and not newer_parts(a) and not holds(a, "</action>", "</think>")


def holds(a: Action, *marks: str) -> bool:
    """Whether it types a mark that would end the form in which it is written."""
    return any(mark in (a.text or "") for mark in marks)
