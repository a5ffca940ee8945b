"""Completion text -> typed actions, by a whitelist. Nothing a model writes is ever evaluated.

Of the dialects that may be tried the one whose action begins first decides; a completion that none can read
is a visible error.
"""

from pydantic import ValidationError

from training.actions.coordinates import Size, space_size
from training.actions.dialects.registry import tried_dialects
from training.actions.errors import ActionTextError
from training.actions.parse.argument_values import Found, Points
from training.contracts.config import CoordinateSpace
from training.contracts.observed_text import Box
from training.contracts.types import Action, ActionKind, ParsedCompletion

MAX_COMPLETION_CHARACTERS = 40_000
"""Longer completions are refused unread: no dialect needs them and parsers cost time."""
_BYTE_ORDER_MARK = "\ufeff"
_END_MARKS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "</s>")
"""What engines leave at the end of a completion; elsewhere it is text that the agent types."""


def parse_completion(
    text: str,
    *,
    dialect: str = "auto",
    space: CoordinateSpace = CoordinateSpace.PERMILLE,
    screen: Size,
    image: Size | None = None,
    most: int = 1,
    boxes: tuple[Box, ...] = (),
) -> ParsedCompletion:
    """The actions that `text` says, or why it says none. Never raises for any text.

    `screen` is the desktop's size in pixels, `image` the resized image's (resized space only), `most` how
    many actions may stand in it (`prompt.actions_per_turn`), `boxes` the marks that code may name (tag_1).
    """
    is_grid = space is CoordinateSpace.RELATIVE
    points = Points(space_size(space, screen, image), screen, is_grid, boxes)
    text = _without_end_marks(text).lstrip().removeprefix(_BYTE_ORDER_MARK).lstrip()
    if not text:
        return ParsedCompletion(error="the completion is empty")
    if len(text) > MAX_COMPLETION_CHARACTERS:
        return ParsedCompletion(error=f"the completion is longer than {MAX_COMPLETION_CHARACTERS} characters")
    begins = [(begin, row) for row in tried_dialects(dialect) if (begin := row.start(text)) is not None]
    if not begins:
        return ParsedCompletion(error=f"no action in a known form ({dialect})")
    _, row = min(begins, key=lambda item: item[0])
    try:
        found = row.parse(text, points)
    except ActionTextError as error:
        return ParsedCompletion(error=str(error), dialect=row.name)
    except ValidationError as error:
        return ParsedCompletion(error=_first_mistake(error), dialect=row.name)
    actions = _fitting(found, most)
    if mistake := _order_mistake(actions, most):
        return ParsedCompletion(error=mistake, dialect=row.name)
    return ParsedCompletion(actions=actions, dialect=row.name, thought=_printable(found.thought))


def _fitting(found: Found, most: int) -> tuple[Action, ...]:
    """The actions, without what may be left out where a turn has no room for it."""
    return found.shorter if len(found.actions) > most and found.shorter else found.actions


def _first_mistake(error: ValidationError) -> str:
    """What the contract of actions does not allow, with the field's name."""
    found = error.errors()[0]
    words = found["msg"].removeprefix("Value error, ")
    return ": ".join([*map(str, found["loc"]), words])


def _order_mistake(actions: tuple[Action, ...], most: int) -> str | None:
    """Why these may not stand in one completion; None when they may."""
    if len(actions) > most:
        return f"more than one action: {len(actions)}, where prompt.actions_per_turn allows {most}"
    if any(action.kind is ActionKind.TERMINATE for action in actions[:-1]):
        return "actions after the one that ends the episode"
    return None


def _without_end_marks(text: str) -> str:
    """`text` without the marks and blanks at its end. No pattern: one takes the square of the blanks."""
    end = len(text)
    while True:
        while end and text[end - 1].isspace():
            end -= 1
        mark = next((mark for mark in _END_MARKS if text.endswith(mark, 0, end)), None)
        if mark is None:
            return text[:end]
        end -= len(mark)


def _printable(text: str) -> str:
    """Lone surrogates, which no encoding holds, as question marks."""
    return text.encode("utf-8", "replace").decode()
