"""What an action changed, measured between the observations before and after it (`MeasuredTurn`)."""

import hashlib

from PIL import ImageChops, ImageStat

from training.actions.action_text_in_tree import is_grounded
from training.contracts.action import CLICKS
from training.contracts.observed_text import MeasuredTurn
from training.contracts.types import Action
from training.observations.widget_tree import BadTree, boxes_at
from workers.desktops.desktop_texts import ReadText
from workers.desktops.frame import Frame


def measured_turn(action: Action | None, before: Frame, after: Frame) -> MeasuredTurn:
    """The facts that rewards need of a turn, from screens and the texts that were read with them."""
    tree, tree_after = (_text(frame.texts.tree) for frame in (before, after))
    terminals = tuple(_text(frame.texts.terminal) for frame in (before, after))
    return MeasuredTurn(
        screen_difference=screen_difference(before, after),
        is_grounded=None if tree is None else is_grounded(action, tree),
        widgets=widgets_clicked(action, tree),
        tree_before=None if tree is None else len(tree),
        tree_after=None if tree_after is None else len(tree_after),
        terminal_changed=None if None in terminals else terminals[0] != terminals[1],
    )


def widgets_clicked(action: Action | None, tree: str | None) -> str:
    """`MeasuredTurn.widgets`; "" as well where the tree is none."""
    if tree is None or action is None or action.kind not in CLICKS or action.x is None or action.y is None:
        return ""
    try:
        boxes = boxes_at(tree, action.x, action.y)
    except BadTree:
        return ""
    return hashlib.sha256(repr(sorted(boxes)).encode()).hexdigest()


def _text(read: ReadText | None) -> str | None:
    """None = not read, or it could not be."""
    return read.text if read else None


def screen_difference(before: Frame, after: Frame) -> float:
    """Mean difference of two screens in grey at 64 x 64, 0 to 1."""
    if before.raw_digest == after.raw_digest:
        return 0.0
    difference = ImageChops.difference(before.small_grey, after.small_grey)
    return float(ImageStat.Stat(difference).mean[0]) / 255.0
