"""Tool: what programs tell about their widgets, as OSWorld's XML, or the text of a terminal.

It stays, and answers on its first stream. A question is a line, `tree` or `terminal`; an answer a length,
a byte (1 = this is it, 0 = this went wrong) and the text.
"""

import gc
import os
import socket

from workers.guest.widgets import HEAD
from workers.guest.widgets.accessibility_tree import TreeReader
from workers.guest.widgets.dbus_calls import BusError
from workers.guest.widgets.tree_xml import xml_of

CLEAN_EVERY = 50


def tree(reader: TreeReader) -> str:
    return xml_of(*reader.tree())


def terminal(reader: TreeReader) -> str:
    """The text of the terminal in front, else of the first one; nothing when there is none."""
    terminals = sorted(reader.terminals(), key=lambda found: "focused" not in found[0].states)
    return terminals[0][1].rstrip() if terminals else ""


class Reads:
    """Reads with a bus that is kept, and anew where that one has gone."""

    def __init__(self) -> None:
        self._reader: TreeReader | None = None

    def answer(self, question: str) -> str:
        """Raises BusError."""
        read = {"tree": tree, "terminal": terminal}[question]
        if self._reader is not None:
            try:
                return read(self._reader)
            except BusError:
                self._reader = None
        self._reader = TreeReader()
        return read(self._reader)


def main(_arguments: list[str]) -> int:
    # A collection looks at every widget, over and over: not while one waits.
    gc.disable()
    gc.freeze()
    reads, count = Reads(), 0
    with socket.socket(fileno=os.dup(1)) as stream, stream.makefile("r") as questions:
        for question in questions:
            try:
                raw, is_good = reads.answer(question.strip()).encode(), 1
            except BusError as error:
                raw, is_good = str(error).encode(), 0
            stream.sendall(HEAD.pack(len(raw), is_good) + raw)
            if (count := count + 1) % CLEAN_EVERY == 0:
                gc.collect()
    return 0
