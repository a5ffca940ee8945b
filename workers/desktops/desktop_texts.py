"""What is read of a desktop beside its picture: the accessibility tree and the terminal's text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

from training.contracts.observed_text import ObservedText
from workers.desktops.contract import EnvError

READ_LIMIT_S = 3.0
"""For each text: programs that hang must not hold up a turn."""
MACHINE_READ_LIMIT_S = 20.0
"""Of a virtual machine: emulated, all programs in it are slower."""
MAX_CHARS = 8_000_000
NUL, NUL_SYMBOL = "\x00", "\N{SYMBOL FOR NULL}"


@dataclass(frozen=True)
class ReadText:
    """One text, or why it could not be read."""

    text: str | None
    error: str = ""

    @classmethod
    def of(cls, read: Callable[[], str]) -> Self:
        """What `read` answers; its EnvError is no error of the episode."""
        try:
            text = read()
        except EnvError as error:
            return cls(None, str(error)[:300])
        if len(text) > MAX_CHARS:
            return cls(None, f"it has {len(text)} characters; {MAX_CHARS} are read")
        return cls(text.encode("utf-8", "replace").decode().replace(NUL, NUL_SYMBOL))

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest() if self.text is not None else ""

    @property
    def observed(self) -> ObservedText:
        """As it stands in the turn."""
        return ObservedText(sha256=self.sha256, num_chars=len(self.text or ""), error=self.error)


@dataclass(frozen=True, slots=True)
class Reads:
    """Which texts are read with each screenshot."""

    tree: bool = False
    terminal: bool = False

    def __bool__(self) -> bool:
        return self.tree or self.terminal


NOTHING = Reads()


@dataclass(frozen=True, slots=True)
class DesktopTexts:
    """Those of one moment; None = not read with this screenshot."""

    tree: ReadText | None = None
    terminal: ReadText | None = None

    @classmethod
    def read(cls, reads: Reads, source: TextSource) -> Self:
        """As `reads` says. Raises nothing: what fails is said in its place."""
        tree = ReadText.of(source.accessibility) if reads.tree else None
        return cls(tree, ReadText.of(source.terminal) if reads.terminal else None)

    @property
    def blobs(self) -> dict[str, str]:
        """sha256 -> text of those that were read."""
        return {one.sha256: one.text for one in (self.tree, self.terminal) if one and one.text is not None}


class TextSource(Protocol):
    """Raises EnvError within READ_LIMIT_S."""

    def accessibility(self) -> str:
        """OSWorld's XML of all programs' widgets."""

    def terminal(self) -> str:
        """Text of the terminal in front; "" when there is none."""


NO_TEXTS = DesktopTexts()
