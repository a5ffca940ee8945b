"""Numbers and layouts of RFB that the proxy knows: message types, lengths, encodings that may pass."""

from dataclasses import dataclass
from enum import IntEnum

VERSION = b"RFB 003.008\n"
VERSION_LENGTH = 12
SECURITY_NONE = 1
SHARED = b"\x01"
SERVER_INIT_LENGTH = 24
"""Without the desktop's name, whose length stands in the last four bytes."""
MAX_NAME = 4096
MAX_SIDE = 16_384
"""Pixels of a screen; a browser makes a picture of the size that the server says, before it has any."""


class RfbError(Exception):
    """Raised when a peer does not speak the protocol; the connection cannot go on."""


class ClientMessage(IntEnum):
    """First byte of a message from client to server."""

    SET_PIXEL_FORMAT = 0
    SET_ENCODINGS = 2
    UPDATE_REQUEST = 3
    KEY = 4
    POINTER = 5
    CUT_TEXT = 6
    CONTINUOUS_UPDATES = 150
    XVP = 250
    SET_DESKTOP_SIZE = 251
    QEMU = 255


FIXED_LENGTHS = {
    ClientMessage.SET_PIXEL_FORMAT: 20,
    ClientMessage.UPDATE_REQUEST: 10,
    ClientMessage.KEY: 8,
    ClientMessage.POINTER: 6,
    ClientMessage.CONTINUOUS_UPDATES: 10,
    ClientMessage.XVP: 4,
    ClientMessage.QEMU: 12,
}
"""Whole length of messages that always have the same; of QEMU only the key event exists for us."""

PIXEL_ENCODINGS = frozenset({0, 1, 2, 5, 6, 7, 16, -260})
"""Raw, CopyRect, RRE, Hextile, Zlib, Tight, ZRLE, TightPNG."""
QUALITY_LEVELS = frozenset(range(-32, -22))
COMPRESSION_LEVELS = frozenset(range(-256, -246))
DESKTOP_SIZE, LAST_RECT, CURSOR = -223, -224, -239
WATCHING_ENCODINGS = PIXEL_ENCODINGS | QUALITY_LEVELS | COMPRESSION_LEVELS | {DESKTOP_SIZE, LAST_RECT}
"""What a watcher may ask for. Everything else would add client messages of other lengths (extended mouse
buttons, QEMU keys, extended clipboard) or let the server send without being asked (continuous updates,
fences), which would end the flow control that a slow browser needs. Without the cursor encoding the
server draws the pointer into the picture, so a watcher sees where the agent points."""
CONTROL_ENCODINGS = WATCHING_ENCODINGS | {CURSOR}
"""Who controls sees their own pointer at once, in the shape that the desktop gives it."""
MAX_ENCODINGS = 1024


@dataclass(frozen=True, slots=True)
class KeyEvent:
    """A key went down or up."""

    keysym: int
    is_down: bool


@dataclass(frozen=True, slots=True)
class PointerEvent:
    """Where the pointer is and which buttons are held."""

    buttons: int
    """Bit 0 = left, 1 = middle, 2 = right, 3 to 6 = wheel up, down, left, right."""
    x: int
    y: int


InputEvent = KeyEvent | PointerEvent


def key_bytes(event: KeyEvent) -> bytes:
    """The message that says `event`."""
    down = 1 if event.is_down else 0
    return bytes([ClientMessage.KEY, down, 0, 0]) + event.keysym.to_bytes(4, "big")


def pointer_bytes(event: PointerEvent) -> bytes:
    """The message that says `event`."""
    place = event.x.to_bytes(2, "big") + event.y.to_bytes(2, "big")
    return bytes([ClientMessage.POINTER, event.buttons]) + place


def read_key(message: bytes) -> KeyEvent:
    return KeyEvent(int.from_bytes(message[4:8], "big"), message[1] != 0)


def read_pointer(message: bytes) -> PointerEvent:
    """Only the seven buttons that a plain pointer message has."""
    x, y = int.from_bytes(message[2:4], "big"), int.from_bytes(message[4:6], "big")
    return PointerEvent(message[1] & 0x7F, x, y)
