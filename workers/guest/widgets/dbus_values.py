"""Values of D-Bus messages: written by hand for the few calls that are made, read by their signatures."""

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

MAX_SIGNATURE = 64
"""Of an answer; those that are asked for have 26 at most."""
PATH, INTERFACE, MEMBER, REPLY_SERIAL, DESTINATION, SIGNATURE = 1, 2, 3, 5, 6, 8
"""Fields of a header."""
Read = Callable[[bytes, int], tuple[Any, int]]
"""(message, place) -> (value, place behind it)."""
Answers = Mapping[bytes, Read]
"""Signature of a body -> how it is read."""
Ref = tuple[str, str]
"""A program's name on the bus, and the path of an object in it."""
_NUMBER = struct.Struct("<I").unpack_from
_U, _G = ord("u"), ord("g")


def text(value: str) -> bytes:
    """A string, as the first value of a body."""
    raw = value.encode()
    return struct.pack("<I", len(raw)) + raw + b"\0"


def texts(*values: str) -> bytes:
    body = b""
    for value in values:
        body += bytes(-len(body) % 4) + text(value)
    return body


def field_of(code: int, kind: str, value: str) -> bytes:
    """One field of a header; whole ones begin at multiples of 8."""
    return bytes((code, 1)) + kind.encode() + b"\0" + text(value)


@lru_cache(maxsize=256)
def call_fields(interface: str, method: str, signature: str, destination: str) -> bytes:
    """The fields of a call but its path, which comes last."""
    fields = [field_of(INTERFACE, "s", interface), field_of(MEMBER, "s", method)]
    if signature:
        raw = signature.encode()
        fields.append(bytes((SIGNATURE, 1)) + b"g\0" + bytes((len(raw),)) + raw + b"\0")
    if destination:
        fields.append(field_of(DESTINATION, "s", destination))
    return b"".join(field + bytes(-len(field) % 8) for field in fields)


def reply_fields(message: bytes) -> tuple[int, bytes]:
    """(serial of the call, signature of the body)."""
    serial, signature = 0, b""
    end = 16 + _NUMBER(message, 12)[0]
    place = 16
    while place < end:
        place += -place & 7
        code, kind = message[place], message[place + 2]
        place += 4
        if kind == _U:
            if code == REPLY_SERIAL:
                (serial,) = _NUMBER(message, place)
            place += 4
        elif kind == _G:
            length = message[place]
            signature = message[place + 1 : place + 1 + length]
            place += length + 2
        else:
            place += 5 + _NUMBER(message, place)[0]
    return serial, signature


def readers(*signatures: str) -> Answers:
    """How bodies of these signatures are read."""
    return {signature.encode(): reader(f"({signature})") for signature in signatures}


NUMBERS = {"y": "B", "b": "I", "n": "h", "q": "H", "i": "i", "u": "I", "x": "q", "t": "Q", "d": "d"}


@lru_cache(maxsize=256)
def reader(kind: str) -> Read:
    """Reads one value of a complete type. Raises ValueError for a type that is none."""
    if kind in NUMBERS:
        return _number_reader(NUMBERS[kind])
    if kind in ("s", "o"):
        return _read_text
    if kind == "g":
        return _read_signature
    if kind == "v":
        return _read_variant
    if kind.startswith("a{"):
        items = _array_reader(kind[1:])
        return lambda message, place: _as_dict(items(message, place))
    if kind.startswith("a"):
        return _array_reader(kind[1:])
    if kind[:1] in ("(", "{") and len(kind) > 2:
        if set(kind[1:-1]) <= {"i", "u"}:
            return _numbers_reader(kind[1:-1])
        return _tuple_reader(tuple(reader(part) for part in _parts(kind[1:-1])))
    raise ValueError(f"no type of D-Bus: {kind!r}")


def _as_dict(found: tuple[list[Any], int]) -> tuple[dict[Any, Any], int]:
    return dict(found[0]), found[1]


def _number_reader(letter: str) -> Read:
    one = struct.Struct(f"<{letter}")
    size = one.size

    def read(message: bytes, place: int) -> tuple[Any, int]:
        place += -place % size
        return one.unpack_from(message, place)[0], place + size

    return read


def _numbers_reader(kinds: str) -> Read:
    """A place on the screen, in one step."""
    all_of_them = struct.Struct("<" + "".join(NUMBERS[kind] for kind in kinds))

    def read(message: bytes, place: int) -> tuple[Any, int]:
        place += -place & 7
        return all_of_them.unpack_from(message, place), place + all_of_them.size

    return read


def _read_text(message: bytes, place: int) -> tuple[str, int]:
    place += -place & 3
    end = place + 4 + _NUMBER(message, place)[0]
    if end >= len(message):
        raise ValueError("a text beyond its message")
    return message[place + 4 : end].decode("utf-8", "replace"), end + 1


def _read_signature(message: bytes, place: int) -> tuple[str, int]:
    end = place + 1 + message[place]
    return message[place + 1 : end].decode("ascii", "replace"), end + 1


def _read_variant(message: bytes, place: int) -> tuple[Any, int]:
    kind, place = _read_signature(message, place)
    if len(kind) > MAX_SIGNATURE or len(_parts(kind)) != 1 or "v" in kind:
        raise ValueError("a variant of variants, or of several values")
    return reader(kind)(message, place)


def _array_reader(item: str) -> Read:
    read, align = reader(item), 8 if item[0] in "({xtd" else {"y": 1, "g": 1, "v": 1}.get(item[0], 4)

    def read_all(message: bytes, place: int) -> tuple[list[Any], int]:
        place += -place % 4
        (length,) = struct.unpack_from("<I", message, place)
        place += 4
        place += -place % align
        end, found = place + length, []
        if end > len(message):
            raise ValueError("an array beyond its message")
        while place < end:
            value, place = read(message, place)
            found.append(value)
        return found, end

    return read_all


def _tuple_reader(parts: tuple[Read, ...]) -> Read:
    def read(message: bytes, place: int) -> tuple[tuple[Any, ...], int]:
        place += -place % 8
        found = []
        for part in parts:
            value, place = part(message, place)
            found.append(value)
        return tuple(found), place

    return read


def _parts(kinds: str) -> list[str]:
    """The complete types of a signature. Raises ValueError."""
    found, start = [], 0
    while start < len(kinds):
        end = _type_end(kinds, start)
        found.append(kinds[start:end])
        start = end
    return found


def _type_end(kinds: str, place: int) -> int:
    while kinds[place : place + 1] == "a":
        place += 1
    if kinds[place : place + 1] not in ("(", "{"):
        if place >= len(kinds):
            raise ValueError("an array of nothing")
        return place + 1
    depth = 0
    for end in range(place, len(kinds)):
        depth += (kinds[end] in "({") - (kinds[end] in ")}")
        if not depth:
            return end + 1
    raise ValueError("a bracket that does not close")
