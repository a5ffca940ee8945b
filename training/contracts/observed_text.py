"""What was read of a desktop beside its picture, and what rewards need of it."""

from typing import Annotated

from pydantic import Field

from training.contracts.wire import Wire


class ObservedText(Wire):
    """The raw text of one turn's accessibility tree (OSWorld's XML) or of its terminal."""

    sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """Of the text's UTF-8; the blob lies with the screenshots. "" when it could not be read."""
    num_chars: int = Field(default=0, ge=0)
    error: str = Field(default="", max_length=300, exclude_if=lambda why: not why)
    """Why it could not be read; the episode goes on."""


Pixels = Annotated[int, Field(ge=0, le=999_999_999)]
Box = tuple[Pixels, Pixels, Pixels, Pixels]
"""Left, top, width and height on the screen."""


class Marks(Wire):
    """The numbered boxes of a picture; the turn's own digest names the picture with them."""

    plain: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """Of the screenshot without them; "" = it was not kept."""
    boxes: tuple[Box, ...] = Field(default=(), max_length=2000)
    """The first is number 1."""


class MeasuredTurn(Wire):
    """What an action changed, measured when it was done, so that rewards are computed anew without blobs.

    None everywhere: not recorded, or unreadable on one side of the action.
    """

    screen_difference: float | None = Field(default=None, ge=0, le=1, exclude_if=lambda value: value is None)
    """Mean difference of the screens before and after it, in grey at 64 x 64; 0 = alike."""
    is_grounded: bool | None = Field(default=None, exclude_if=lambda value: value is None)
    """Whether what the action types, or its first key, stands in the tree that was read before it
    (`training.actions.action_text_in_tree`)."""
    tree_before: int | None = Field(default=None, exclude_if=lambda value: value is None)
    """Characters of the raw accessibility tree before the action."""
    tree_after: int | None = Field(default=None, exclude_if=lambda value: value is None)
    widgets: str = Field(default="", max_length=64, exclude_if=lambda digest: not digest)
    """Digest of the boxes in the tree before the action that hold the point that it clicks; "" = no tree."""
    terminal_changed: bool | None = Field(default=None, exclude_if=lambda value: value is None)


NOT_MEASURED = MeasuredTurn()
"""Of turns that were recorded before anything was."""
