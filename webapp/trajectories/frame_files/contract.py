"""What both kinds of storage do with a screenshot's files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

FileNames = tuple[str, ...]
"""Storage names of one screenshot's files. The PNG is the last: where it is, the others are."""


@dataclass(frozen=True, slots=True)
class FrameFile:
    """What is written under one name."""

    name: str
    body: bytes
    content_type: str


class FrameFiles(Protocol):
    """Raises StorageAway where a storage on the network does not answer."""

    def keep(self, names: FileNames, made: Callable[[], Sequence[FrameFile]]) -> None:
        """Have them stored, in the order of `names`. Those that are there are renewed: `delete_unused`
        then lets them be. `made` is called when they have to be written."""

    def read(self, name: str) -> bytes:
        """One file. Raises FileNotFoundError."""

    def num_bytes(self, names: FileNames) -> int:
        """Of all of them; 0 when they are gone."""

    def delete_unused(self, frames: Sequence[FileNames], unused_since: float) -> list[FileNames]:
        """Delete those that were not stored since (seconds, wall clock); returns which are gone now.

        One that is stored in the same moment is whole afterwards.
        """

    def link(self, name: str, content_type: str) -> tuple[str, int] | None:
        """A URL that opens the file without a sign-in, and for how many seconds; None when none is made."""
