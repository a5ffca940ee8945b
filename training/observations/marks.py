"""Numbered boxes on a screenshot and their list, as OSWorld's set-of-marks agent shows them to its models.

index	tag	name	text
1	push-button	Save	""
"""

from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

from training.contracts.observed_text import Box
from training.observations.osworld_table import quoted_text
from training.observations.widget_tree import widgets_of

HEADER = "index\ttag\tname\ttext"
MOST = 2000
"""Boxes of one picture; a full screen of cells has some hundred."""


@dataclass(frozen=True)
class MarkedPicture:
    """What the policy sees and reads of one screen."""

    picture: Image.Image
    boxes: tuple[Box, ...]
    """Left, top, width and height in screen pixels; the first is number 1."""
    listed: str


def draw_marks(screen: Image.Image, xml: str) -> MarkedPicture:
    """Box and number for each usable widget that shows more than one colour. Raises BadTree.

    Each is drawn over those before it, which also decides what it shows.
    """
    picture, boxes, rows = screen.convert("RGB"), [], [HEADER]
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default()
    for widget in widgets_of(xml):
        if not widget.is_markable or (box := widget.box) is None or _is_one_colour(picture, box):
            continue
        boxes.append(box)
        rows.append(f"{len(boxes)}\t{widget.role}\t{widget.name}\t{quoted_text(widget)}")
        _draw(draw, font, box, str(len(boxes)), picture.size)
        if len(boxes) == MOST:
            break
    return MarkedPicture(picture, tuple(boxes), "\n".join(rows))


def _is_one_colour(picture: Image.Image, box: Box) -> bool:
    """What lies beyond the picture counts as black; it is never made, however large the box says it is."""
    left, top, width, height = box
    right, bottom = min(left + width, picture.width), min(top + height, picture.height)
    if right <= left or bottom <= top:
        return True
    found = picture.crop((left, top, right, bottom)).getcolors(1)
    reaches_out = left + width > right or top + height > bottom
    return found is not None and (not reaches_out or found[0][1] == (0, 0, 0))


def _draw(
    draw: ImageDraw.ImageDraw,
    font: ImageFont.ImageFont | ImageFont.FreeTypeFont,
    box: Box,
    number: str,
    size: tuple[int, int],
) -> None:
    """The outline, and the number in white on black at the lower left; edges far outside are cut."""
    left, top, width, height = box
    right, bottom = min(left + width, size[0] + 999), min(top + height, size[1] + 999)
    draw.rectangle((left, top, right, bottom), outline="red", width=1)
    at = (left, bottom)
    draw.rectangle(draw.textbbox(at, number, font=font, anchor="lb"), fill="black")
    draw.text(at, number, font=font, anchor="lb", fill="white")
