"""RFB messages of a browser, as bytes."""

from webapp.screens.rfb.browser_filter import BrowserFilter
from webapp.screens.rfb.protocol import KeyEvent, PointerEvent, key_bytes, pointer_bytes

SERVER_INIT = bytes([0, 4, 0, 3]) + bytes(16) + (4).to_bytes(4, "big") + b"desk"
HELLO = b"RFB 003.008\n" + b"\x01" + b"\x00"
PIXEL_FORMAT = bytes(20)
UPDATE = bytes([3, 1]) + bytes(8)
CLICK = pointer_bytes(PointerEvent(1, 5, 6)) + pointer_bytes(PointerEvent(0, 5, 6))
KEY = key_bytes(KeyEvent(ord("a"), True)) + key_bytes(KeyEvent(ord("a"), False))
CUT_TEXT = bytes([6, 0, 0, 0]) + (5).to_bytes(4, "big") + b"paste"
XVP = bytes([250, 0, 1, 2])
RESIZE = bytes([251, 0, 2, 0, 1, 0, 1, 0]) + bytes(16)
QEMU_KEY = bytes([255, 0]) + bytes(10)
CONTINUOUS = bytes([150, 1]) + bytes(8)


def encodings(*numbers: int) -> bytes:
    """SetEncodings."""
    head = bytes([2, 0]) + len(numbers).to_bytes(2, "big")
    return head + b"".join(number.to_bytes(4, "big", signed=True) for number in numbers)


def greeted(*, may_act: bool = False, wants_control: bool = False) -> BrowserFilter:
    """A connection past its handshake."""
    side = BrowserFilter(SERVER_INIT, wants_control=wants_control)
    side.may_act = may_act
    side.hear(HELLO)
    return side
