"""A program's whole tree in one message is read as the general reader reads it, and nonsense is refused."""

import random
import struct
from collections.abc import Sequence

import pytest

from workers.guest.widgets.accessibility_names import ROLES, state_names
from workers.guest.widgets.cache_items import ITEMS
from workers.guest.widgets.dbus_values import reader, text

NEW, OLD = sorted(ITEMS, key=len)


def padded(body: bytes, to: int) -> bytes:
    return body + bytes(-len(body) % to)


def array(body: bytes, items: Sequence[bytes], align: int) -> bytes:
    """A body with an array behind it."""
    start = padded(body, 4) + bytes(4)
    start = padded(start, align)
    whole = start
    for item in items:
        whole = padded(whole, align) + item
    place = len(padded(body, 4))
    return whole[:place] + struct.pack("<I", len(whole) - len(start)) + whole[place + 4 :]


def reference(body: bytes, ref: tuple[str, str]) -> bytes:
    return padded(padded(body, 8) + text(ref[0]), 4) + text(ref[1])


def message(rng: random.Random, count: int, signature: bytes) -> bytes:
    words = ("", "é 日本", "Save & <close>", "W 1")
    body = bytes(8)
    for number in range(count):
        body = padded(body, 8)
        for path in (f"/a/{number}", "/root", f"/a/{rng.randrange(count)}"):
            body = reference(body, (":1.7", path))
        if signature == NEW:
            body = padded(body, 4) + struct.pack("<ii", rng.randrange(-1, 9), rng.randrange(-1, 9))
        else:
            children = [reference(b"", (":1.7", "/a/1"))] * rng.randrange(3)
            body = array(body, children, 8)
        names = [text(f"org.a11y.atspi.{name}") for name in ("Accessible", "Text")[: rng.randrange(3)]]
        body = array(body, names, 4)
        body = padded(body, 4) + text(rng.choice(words))
        body = padded(body, 4) + struct.pack("<I", rng.randrange(len(ROLES)))
        body += text(rng.choice(words))
        body = array(body, [struct.pack("<I", rng.getrandbits(32)) for _ in range(2)], 4)
    return struct.pack("<I", len(body) - 8) + body[4:]


@pytest.mark.parametrize("signature", [NEW, OLD])
def test_items_are_what_the_general_reader_makes_of_them(signature: bytes) -> None:
    rng = random.Random(7)
    for count in (0, 1, 40):
        raw = message(rng, count, signature)
        (slow,), _ = reader(f"({signature.decode()})")(raw, 0)
        (quick,), end = ITEMS[signature](raw, 0)
        assert end == len(raw)
        assert len(quick) == count
        for item, (ref, _application, parent, *rest) in zip(quick, slow, strict=True):
            index, children = rest[:2] if signature == NEW else (-1, -1)
            interfaces, name, role, _description, states = rest[2 if signature == NEW else 1 :]
            names = {interface.removeprefix("org.a11y.atspi.") for interface in interfaces}
            assert item == (
                ref, parent, index, children, names, name, ROLES[role], state_names(tuple(states))
            )  # fmt: skip


def test_a_message_that_is_cut_or_changed_is_refused_or_read_to_its_end() -> None:
    rng = random.Random(3)
    raw = message(rng, 12, NEW)
    for _ in range(300):
        broken = bytearray(raw[: rng.randrange(9, len(raw))])
        broken[rng.randrange(len(broken))] = rng.randrange(256)
        with pytest.raises((ValueError, struct.error, IndexError)):
            ITEMS[NEW](bytes(broken), 0)
