"""Splits QEMU's migration stream of a cloned machine into its devices and the memory that it changed.

A clone maps its template's memory privately, so QEMU writes all of it into the stream although most of it
is the template's. What is kept is the stream without those pages, and the pages that differ:

    STREAM, TEMPLATE/ram -> state (headers, small memories, devices), ram.delta (changed pages)

ram.delta is MAGIC, then two counts (u64), then the numbers (u32, little-endian) of the pages that have
contents and of those that became zero, then the contents. The format of the stream is that of QEMU's
migration/ram.c and savevm.c, without compression; whatever else is met is refused, never skipped.

    python workers/desktops/qemu/migration_stream.py STREAM TEMPLATE_RAM STATE DELTA
A process of its own: the desk host's loop must not wait for a walk over a quarter of a million pages.
"""

from __future__ import annotations

import mmap
import struct
import sys
from array import array
from pathlib import Path
from typing import BinaryIO

PAGE_BYTES = 4096
MAGIC = b"DHRAM001"
COUNTS = struct.Struct("<QQ")
START, PART, END, FOOTER = 0x01, 0x02, 0x03, 0x7E
"""Kinds of sections; the footer closes each."""
ZERO, MEM_SIZE, PAGE, EOS, CONTINUE = 0x02, 0x04, 0x08, 0x10, 0x20
"""Flags in the low bits of a record's address."""
RAM_SECTION = b"\x03ram" + struct.pack(">II", 0, 4)
"""Name, instance 0, version 4."""
HEADER_LIMIT = 4096
"""The memory's section begins within the first bytes: only the machine's name comes before it."""


class StreamError(ValueError):
    """Raised when a stream is not what this QEMU version is known to write."""


class Splitter:
    """Walks over one stream, page by page."""

    def __init__(self, stream: mmap.mmap, template: mmap.mmap, state: BinaryIO) -> None:
        self._stream = stream
        self._template = template
        self._state = state
        self._at = 0
        self._main = b""
        """Name of the machine's memory: the block as large as the template's file."""
        self._block = b""
        self.changed = array("I")
        self.zeroed = array("I")
        self.contents: list[bytes] = []

    def run(self) -> None:
        """Write the state; afterwards `changed`, `zeroed` and `contents` hold the delta."""
        self._copy_to(self._begin())
        while self._stream[self._at] in (PART, END):
            is_last = self._stream[self._at] == END
            self._copy_to(self._at + 5)  # kind, section number
            self._pages()
            self._footer()
            if is_last:
                break
        else:
            raise StreamError(f"a section of kind {self._stream[self._at]:#x} stands among the memory")
        self._copy_to(len(self._stream))

    def _begin(self) -> int:
        """Read the list of memories; the offset behind its section."""
        found = self._stream.find(RAM_SECTION, 0, HEADER_LIMIT)
        if self._stream[:4] != b"QEVM" or found < 5 or self._stream[found - 5] != START:
            raise StreamError("no memory section at the beginning")
        at = found + len(RAM_SECTION)
        total, at = self._number(at), at + 8
        if not total & MEM_SIZE:
            raise StreamError("the memory section does not begin with its size")
        left = total & ~(PAGE_BYTES - 1)
        while left > 0:
            name, at = self._name(at)
            size, at = self._number(at), at + 16  # size, then the address that x-ignore-shared adds
            if size == len(self._template):
                self._main = name
            left -= size
        if not self._main:
            raise StreamError(f"no memory of {len(self._template)} bytes, the template's size, is in it")
        if self._number(at) != EOS or self._stream[at + 8] != FOOTER:
            raise StreamError("the list of memories does not end where it should")
        return at + 8 + 5

    def _pages(self) -> None:
        """The records of one section; those of the machine's memory go to the delta."""
        while True:
            start = self._at
            value = self._number(start)
            flags, address, at = value & (PAGE_BYTES - 1), value & ~(PAGE_BYTES - 1), start + 8
            if flags == EOS:
                return self._copy_to(at)
            if not flags & CONTINUE:
                self._block, at = self._name(at)
            kind = flags & ~CONTINUE
            if kind == ZERO:
                at += 1
            elif kind == PAGE:
                at += PAGE_BYTES
            else:
                raise StreamError(f"a memory record has flags {flags:#x}")
            if self._block != self._main:
                self._copy_to(at)
                continue
            self._at = at
            self._compare(address, self._stream[at - PAGE_BYTES : at] if kind == PAGE else NOTHING)

    def _compare(self, address: int, content: bytes) -> None:
        if self._template[address : address + PAGE_BYTES] == content:
            return
        if content == NOTHING:
            self.zeroed.append(address // PAGE_BYTES)
        else:
            self.changed.append(address // PAGE_BYTES)
            self.contents.append(content)

    def _footer(self) -> None:
        if self._stream[self._at] != FOOTER:
            raise StreamError("a section has no footer")
        self._copy_to(self._at + 5)

    def _copy_to(self, end: int) -> None:
        self._state.write(self._stream[self._at : end])
        self._at = end

    def _number(self, at: int) -> int:
        return int.from_bytes(self._stream[at : at + 8], "big")

    def _name(self, at: int) -> tuple[bytes, int]:
        end = at + 1 + self._stream[at]
        return self._stream[at + 1 : end], end


NOTHING = bytes(PAGE_BYTES)


def split(stream: Path, template: Path, state: Path, delta: Path) -> None:
    """Write `state` and `delta`. Raises StreamError, OSError."""
    with _mapped(stream) as source, _mapped(template) as ram, open(state, "xb") as out:
        splitter = Splitter(source, ram, out)
        splitter.run()
    with open(delta, "xb") as out:
        out.write(MAGIC + COUNTS.pack(len(splitter.changed), len(splitter.zeroed)))
        for numbers in (splitter.changed, splitter.zeroed):
            out.write(_little(numbers).tobytes())
        out.writelines(splitter.contents)


def apply(delta: Path, ram: Path) -> None:
    """Write the changed pages over a copy of the template's memory. Raises StreamError, OSError."""
    with open(delta, "rb") as source, open(ram, "r+b") as target:
        if source.read(len(MAGIC)) != MAGIC:
            raise StreamError(f"{delta} holds no changed pages")
        num_changed, num_zeroed = COUNTS.unpack(source.read(COUNTS.size))
        changed, zeroed = _numbers(source, num_changed), _numbers(source, num_zeroed)
        for number in changed:
            target.seek(number * PAGE_BYTES)
            content = source.read(PAGE_BYTES)
            if len(content) < PAGE_BYTES:
                raise StreamError(f"{delta} is shorter than it says")
            target.write(content)
        for number in zeroed:
            target.seek(number * PAGE_BYTES)
            target.write(NOTHING)


def _numbers(source: BinaryIO, count: int) -> array[int]:
    numbers = array("I")
    numbers.frombytes(source.read(count * numbers.itemsize))
    if len(numbers) < count:
        raise StreamError("the list of changed pages is shorter than it says")
    return _little(numbers)


def _little(numbers: array[int]) -> array[int]:
    if sys.byteorder == "big":
        numbers = array("I", numbers)
        numbers.byteswap()
    return numbers


def _mapped(path: Path) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def main(argv: list[str]) -> int:
    stream, template, state, delta = map(Path, argv)
    try:
        split(stream, template, state, delta)
    except (StreamError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
