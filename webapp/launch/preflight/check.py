"""One answer of the pre-flight panel."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Check:
    """A question's answer: good, or what is wrong, at which knob, and what to do."""

    level: Literal["good", "warning", "bad", "info"]
    title: str
    detail: str = ""
    path: str = ""
    """The knob that it is about."""
    bar: tuple[tuple[str, float], ...] = ()
    """(name, percent of what there is), shown as one bar."""
