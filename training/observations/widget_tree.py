"""OSWorld's XML of the accessibility tree, and which of its widgets a policy can use."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from training.contracts.observed_text import Box

USABLE_START = "document"
USABLE_ENDINGS = (
    *("item", "button", "heading", "label", "scrollbar", "searchbox", "textbox", "link", "tabelement"),
    *("textfield", "textarea", "menu"),
)
USABLE = frozenset(
    {
        *("alert", "canvas", "check-box", "combo-box", "entry", "icon", "image", "paragraph", "scroll-bar"),
        *("section", "slider", "static", "table-cell", "terminal", "text"),
        # Windows
        *("netuiribbontab", "start", "trayclockwclass", "traydummysearchcontrol", "uiimage", "uiproperty"),
        "uiribboncommandbar",
    }
)
"""Roles of widgets that OSWorld's agents show their models."""


BASE = "https://accessibility.{system}.example.org/ns/"
PAIR = re.compile(r"\(\s*(-?\d{1,9})\s*,\s*(-?\d{1,9})\s*\)")
CAN_BE_USED = ("enabled", "editable", "expandable", "checkable")
MAX_CHARS = 8_000_000
"""Of a tree; ours have 5000 widgets at most, some 2 million characters."""


class BadTree(ValueError):
    """Raised for a text that is no accessibility tree."""


@dataclass(frozen=True)
class Widget:
    element: Element
    system: str
    """ubuntu or windows, whose attribute names it has."""

    @property
    def role(self) -> str:
        return self.element.tag

    @property
    def name(self) -> str:
        return self.element.get("name", "")

    @property
    def text(self) -> str:
        """What stands in it; of an input of Windows its value."""
        if self.element.text:
            return self.element.text
        is_input = self.windows_class.endswith("EditWrapper")
        return self.attribute("value", "value") if is_input else ""

    @property
    def windows_class(self) -> str:
        return self.element.get(f"{{{BASE.format(system='windows')}class}}class", "")

    def attribute(self, kind: str, name: str) -> str:
        """Of a kind such as value or component; "" when it has none."""
        return self.element.get(f"{{{BASE.format(system=self.system)}{kind}}}{name}", "")

    def has_state(self, name: str) -> bool:
        return self.attribute("state", name) == "true"

    @cached_property
    def box(self) -> Box | None:
        """Left, top, width and height on the screen; None when it has no place there."""
        place, size = (PAIR.fullmatch(self.attribute("component", name)) for name in ("screencoord", "size"))
        if place is None or size is None:
            return None
        left, top, width, height = int(place[1]), int(place[2]), int(size[1]), int(size[2])
        return (left, top, width, height) if min(left, top) >= 0 and min(width, height) > 0 else None

    @property
    def is_usable(self) -> bool:
        """Whether OSWorld's agents list it: seen, reacts, says what it is, and has a place."""
        return self.is_markable and bool(self.name or self.element.text)

    @property
    def is_markable(self) -> bool:
        """As `is_usable`; a picture need not say what it is."""
        role = self.role
        if not (role in USABLE or role.startswith(USABLE_START) or role.endswith(USABLE_ENDINGS)):
            return False
        is_seen = self.has_state("visible") and (self.system == "windows" or self.has_state("showing"))
        says = bool(self.name or self.element.text) or self.element.get("image") == "true"
        return is_seen and says and any(map(self.has_state, CAN_BE_USED)) and self.box is not None


def boxes_at(xml: str, x: int, y: int) -> set[Box]:
    """Of all widgets that show, in a window or behind it. Raises BadTree."""
    boxes = (widget.box for widget in widgets_of(xml) if widget.has_state("visible"))
    return {box for box in boxes if box and 0 <= x - box[0] < box[2] and 0 <= y - box[1] < box[3]}


def widgets_of(xml: str) -> Iterator[Widget]:
    """All of a tree, in the document's order. Raises BadTree."""
    if len(xml) > MAX_CHARS:
        raise BadTree(f"the tree has {len(xml)} characters; {MAX_CHARS} are read")
    if "<!DOCTYPE" in xml:
        raise BadTree("the tree declares a document type, which no tree of ours has")
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise BadTree(f"the tree is no XML: {error}") from error
    system = "windows" if BASE.format(system="windows") + "state" in xml else "ubuntu"
    return (Widget(element, system) for element in root.iter())
