"""A program's whole tree as its cache sends it: hundreds of widgets in one message, read by hand.

The general reader of values takes three times as long, and a turn waits for it.
"""

import struct
from functools import lru_cache, partial
from typing import NamedTuple

from workers.guest.widgets.accessibility_names import role_name, state_names
from workers.guest.widgets.dbus_values import Answers, Ref, reader

_NUMBER = struct.Struct("<I").unpack_from
_INDEX = struct.Struct("<ii").unpack_from


class Item(NamedTuple):
    """What a program says of a widget without being asked about it."""

    ref: Ref
    parent: Ref
    number: int
    """Its place among its parent's children; -1 = it does not know."""
    num_children: int
    """-1 = it does not say."""
    interfaces: frozenset[str]
    name: str
    role: str
    states: frozenset[str]


def read_items(message: bytes, place: int, *, with_children: bool) -> tuple[tuple[list[Item]], int]:
    """The one value of a body that begins at `place`, and its end. Raises ValueError or struct.error."""
    (length,) = _NUMBER(message, place)
    place += 8
    end, found = place + length, []
    if end > len(message):
        raise ValueError("items beyond their message")
    while place < end:
        ref, place = _read_ref(message, place + (-place & 7))
        place = _behind_texts(message, place + (-place & 7), 2)  # the application
        parent, place = _read_ref(message, place + (-place & 7))
        place += -place & 3
        index = num_children = -1
        if with_children:
            (size,) = _NUMBER(message, place)
            place += 4
            place += (-place & 7) + size
        else:
            index, num_children = _INDEX(message, place)
            place += 8
        place += -place & 3
        (size,) = _NUMBER(message, place)
        interfaces, place = _interfaces(message[place + 4 : place + 4 + size]), place + 4 + size
        place += -place & 3
        (size,) = _NUMBER(message, place)
        name, place = message[place + 4 : place + 4 + size].decode("utf-8", "replace"), place + 5 + size
        place += -place & 3
        (role,) = _NUMBER(message, place)
        place = _behind_texts(message, place + 4, 1)  # the description
        place += -place & 3
        (size,) = _NUMBER(message, place)
        states, place = _states(message[place + 4 : place + 4 + size]), place + 4 + size
        found.append(Item(ref, parent, index, num_children, interfaces, name, role_name(role), states))
    if place != end:
        raise ValueError("items that do not end with their message")
    return (found,), place


def _read_ref(message: bytes, place: int) -> tuple[Ref, int]:
    (size,) = _NUMBER(message, place)
    name = message[place + 4 : place + 4 + size]
    place += 5 + size
    place += -place & 3
    (size,) = _NUMBER(message, place)
    return (_name(name), message[place + 4 : place + 4 + size].decode("utf-8", "replace")), place + 5 + size


def _behind_texts(message: bytes, place: int, count: int) -> int:
    for _ in range(count):
        place += -place & 3
        place += 5 + _NUMBER(message, place)[0]
    return place


@lru_cache(maxsize=1024)
def _name(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


@lru_cache(maxsize=1024)
def _interfaces(raw: bytes) -> frozenset[str]:
    """Short names; of hundreds of widgets a dozen sets differ."""
    names, _ = reader("as")(len(raw).to_bytes(4, "little") + raw, 0)
    return frozenset(name.removeprefix("org.a11y.atspi.") for name in names)


@lru_cache(maxsize=1024)
def _states(raw: bytes) -> frozenset[str]:
    return state_names(struct.unpack(f"<{len(raw) // 4}I", raw))


ITEMS: Answers = {
    b"a((so)(so)(so)iiassusau)": partial(read_items, with_children=False),
    # Old toolkits send the children instead of index and count.
    b"a((so)(so)(so)a(so)assusau)": partial(read_items, with_children=True),
}
