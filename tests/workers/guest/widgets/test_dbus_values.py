"""Answers of programs are read by their signatures; nonsense is an error, and never an endless loop."""

import struct

import pytest

from workers.guest.widgets.dbus_values import reader, text, texts


def test_values_stand_at_multiples_of_their_size() -> None:
    """As `a{sv}` of an AT-SPI value: each pair begins at a multiple of 8, its double too."""
    head = text("Value") + b"\x01d\x00"
    pair = head + bytes(-len(head) % 8) + struct.pack("<d", 2.5)
    message = struct.pack("<I", len(pair)) + bytes(4) + pair
    assert reader("a{sv}")(message, 0) == ({"Value": 2.5}, len(message))


def test_texts_that_are_written_are_read() -> None:
    body = texts("org.a11y.atspi.Accessible", "Name", "é 日本")
    assert reader("(sss)")(body, 0) == (("org.a11y.atspi.Accessible", "Name", "é 日本"), len(body))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("as", struct.pack("<I", 1 << 30)),
        ("s", struct.pack("<I", 1 << 30)),
        ("v", b"\x01v\x00"),
        ("v", b"\x02su\x00"),
        ("v", b"\x03a()\x00" + bytes(3) + struct.pack("<I", 8) + bytes(16)),
        ("v", b"\x02(s\x00"),
        ("v", b"\x01a\x00" + bytes(8)),
        ("v", bytes([255]) + b"a" * 255 + bytes(9)),
        ("v", b"\x01Z\x00"),
        ("u", b""),
    ],
)
def test_nonsense_is_refused(kind: str, message: bytes) -> None:
    with pytest.raises((ValueError, IndexError, struct.error)):
        reader(kind)(message, 0)
