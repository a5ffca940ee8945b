"""A migration stream is split into devices and changed memory, and refused where it is not understood."""

import struct
from pathlib import Path

import pytest

from workers.desktops.qemu.migration_stream import (
    CONTINUE,
    EOS,
    MEM_SIZE,
    PAGE,
    PAGE_BYTES,
    ZERO,
    StreamError,
    apply,
    split,
)

NUM_PAGES = 6
BEGIN = b"QEVM" + struct.pack(">I", 3) + b"\x07" + struct.pack(">I", 2) + b"pc"
DEVICES = b"\x04" + b"everything about the devices, of whatever length"


def page(letter: str) -> bytes:
    return letter.encode() * PAGE_BYTES


def block(name: bytes, size: int) -> bytes:
    return bytes([len(name)]) + name + struct.pack(">QQ", size, 0)


def record(flags: int, number: int, name: bytes = b"", content: bytes = b"") -> bytes:
    named = bytes([len(name)]) + name if name else b""
    flags |= 0 if name else CONTINUE
    return struct.pack(">Q", number * PAGE_BYTES | flags) + named + (content or b"\x00")


def section(kind: int, body: bytes) -> bytes:
    number = struct.pack(">I", 2)
    return bytes([kind]) + number + body + struct.pack(">Q", EOS) + b"\x7e" + number


def stream_of(*sections: bytes, size: int = NUM_PAGES * PAGE_BYTES) -> bytes:
    total = struct.pack(">Q", (size + PAGE_BYTES) | MEM_SIZE)
    start = b"\x03ram" + struct.pack(">II", 0, 4) + total + block(b"ram0", size) + block(b"vga", PAGE_BYTES)
    return BEGIN + section(1, start) + b"".join(sections) + DEVICES


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """Memory with the pages a b - d - f; `-` are holes."""
    path = tmp_path / "ram"
    with open(path, "wb") as file:
        for number, letter in ((0, "a"), (1, "b"), (3, "d"), (5, "f")):
            file.seek(number * PAGE_BYTES)
            file.write(page(letter))
    return path


def parts(tmp_path: Path, raw: bytes, template: Path) -> tuple[bytes, Path]:
    stream, state, delta = (tmp_path / name for name in ("stream", "state", "delta"))
    stream.write_bytes(raw)
    split(stream, template, state, delta)
    return state.read_bytes(), delta


def test_only_pages_that_differ_are_kept_and_come_back_over_the_template(tmp_path, template):
    first = record(PAGE, 0, b"ram0", page("a")) + record(PAGE, 1, content=page("B")) + record(ZERO, 2)
    second = (
        record(PAGE, 0, b"vga", page("v"))
        + record(ZERO, 3, b"ram0")
        + record(PAGE, 4, content=page("E"))
        + record(PAGE, 5, content=page("f"))
    )
    state, delta = parts(tmp_path, stream_of(section(2, first), section(3, second)), template)
    assert delta.stat().st_size < 3 * PAGE_BYTES  # B and E; the zeroed page is a number only
    assert page("v") in state
    assert page("a") not in state
    assert page("B") not in state
    assert state.endswith(DEVICES)
    assert state == stream_of(section(2, b""), section(3, record(PAGE, 0, b"vga", page("v"))))
    memory = tmp_path / "copy"
    memory.write_bytes(template.read_bytes())
    apply(delta, memory)
    assert memory.read_bytes() == page("a") + page("B") + page("\0") + page("\0") + page("E") + page("f")


def test_an_unchanged_machine_leaves_an_empty_delta(tmp_path, template):
    same = b"".join(
        record(PAGE if letter != "-" else ZERO, number, b"ram0", b"" if letter == "-" else page(letter))
        for number, letter in enumerate("ab-d-f")
    )
    _, delta = parts(tmp_path, stream_of(section(3, same)), template)
    before = template.read_bytes()
    apply(delta, template)
    assert template.read_bytes() == before
    assert delta.stat().st_size < 64


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"not a stream at all" * 10, "no memory section"),
        (stream_of(section(3, record(0x100, 0, b"ram0", b"z"))), "flags 0x100"),
        (stream_of(section(3, b""), size=7 * PAGE_BYTES), "no memory of"),
        (stream_of(section(2, b"")), "kind 0x4"),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path, template, raw, words):
    with pytest.raises(StreamError, match=words):
        parts(tmp_path, raw, template)


def test_a_delta_that_was_cut_is_refused(tmp_path, template):
    _, delta = parts(tmp_path, stream_of(section(3, record(PAGE, 1, b"ram0", page("B")))), template)
    delta.write_bytes(delta.read_bytes()[:-1])
    with pytest.raises(StreamError, match="shorter"):
        apply(delta, template)
    delta.write_bytes(b"something else")
    with pytest.raises(StreamError, match="no changed pages"):
        apply(delta, template)
