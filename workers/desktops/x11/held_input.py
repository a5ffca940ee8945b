"""Let go of every key and button of a display, of a program as of a person.

Keys, and what was pressed by XTEST, are released by XTEST. A button that a person pressed through the VNC
server belongs to that server's own device: it stays down when their connection ends, and only another
pointer message of the same server releases it.
"""

import socket
import time

from Xlib import XK, X
from Xlib.ext import xtest

from workers.desktops.contract import EnvError
from workers.desktops.x11.display_connection import X11Display
from workers.processes.unix_socket import connect_unix

VERSION = b"RFB 003.008\n"
ONLY_WITHOUT_PASSWORD, SHARED = b"\x01", b"\x01"
INIT_BYTES = 24
VNC_LIMIT_S = 5.0
POINTER_MESSAGE = 5
NUM_BUTTONS = 9
BUTTONS = X.Button1Mask | X.Button2Mask | X.Button3Mask | X.Button4Mask | X.Button5Mask


def release_held(x: X11Display, vnc: str) -> None:
    """All keys and buttons up, Caps Lock and Num Lock off. `vnc`: the VNC server's socket, "" = none."""
    with x.guarded():
        for keycode in pressed_keys(x):
            xtest.fake_input(x.display, X.KeyRelease, keycode)
        for button in range(1, NUM_BUTTONS + 1):
            xtest.fake_input(x.display, X.ButtonRelease, button)
        pointer = x.root.query_pointer()
        _unlock(x, pointer.mask)
        if not pointer.mask & BUTTONS or not vnc:
            return
        _release_by_vnc(vnc, pointer.root_x, pointer.root_y)
        deadline = time.monotonic() + VNC_LIMIT_S
        while x.root.query_pointer().mask & BUTTONS and time.monotonic() < deadline:
            time.sleep(0.005)


def held(x: X11Display) -> str:
    """What is still down, for people; "" = nothing."""
    if pressed_keys(x):
        return "a key is still pressed"
    return "a mouse button is still pressed" if x.root.query_pointer().mask & BUTTONS else ""


def pressed_keys(x: X11Display) -> list[int]:
    """Keycodes that are down."""
    rows = enumerate(x.display.query_keymap())
    return [index * 8 + bit for index, bits in rows for bit in range(8) if bits >> bit & 1]


def _unlock(x: X11Display, mask: int) -> None:
    for lock, name in ((X.LockMask, "Caps_Lock"), (X.Mod2Mask, "Num_Lock")):
        keycode = x.display.keysym_to_keycode(XK.string_to_keysym(name))
        if mask & lock and keycode:
            xtest.fake_input(x.display, X.KeyPress, keycode)
            xtest.fake_input(x.display, X.KeyRelease, keycode)
    x.display.sync()


def _release_by_vnc(path: str, at_x: int, at_y: int) -> None:
    """One pointer message without buttons, where the pointer is. Raises EnvError."""
    try:
        with connect_unix(path, VNC_LIMIT_S) as server:
            _exactly(server, len(VERSION))
            server.sendall(VERSION)
            _exactly(server, _exactly(server, 1)[0])
            server.sendall(ONLY_WITHOUT_PASSWORD)
            if _exactly(server, 4) != bytes(4):
                raise OSError("it asks for a password")
            server.sendall(SHARED)
            init = _exactly(server, INIT_BYTES)
            _exactly(server, int.from_bytes(init[-4:], "big"))
            place = at_x.to_bytes(2, "big") + at_y.to_bytes(2, "big")
            server.sendall(bytes([POINTER_MESSAGE, 0]) + place)
            server.shutdown(socket.SHUT_WR)
            while server.recv(4096):  # it closes when it has read everything
                pass
    except (OSError, IndexError) as exc:
        raise EnvError(f"the desktop's VNC server does not answer: {exc}") from exc


def _exactly(server: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        part = server.recv(length - len(data))
        if not part:
            raise OSError("it hung up")
        data += part
    return data
