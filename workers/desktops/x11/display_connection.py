"""The host's connection to a desktop's X server: screen pixels, change notification, windows.

Connects to a unix socket by path, since each sandbox calls its display :0.
Not thread-safe: one owner at a time.
"""

import contextlib
import select
import socket
import threading
from collections.abc import Iterator

import Xlib.display
import Xlib.error
import Xlib.protocol.display
from Xlib import X
from Xlib.ext import damage
from Xlib.support import connect as _xlib_connect

from workers.desktops.contract import EnvError
from workers.desktops.screen_settling import Pace
from workers.processes.call_watchdog import CALLS
from workers.processes.cgroups import used_cpu_s
from workers.processes.unix_socket import connect_unix

CALL_LIMIT_S = 10.0
"""A frozen X server must become an error, not a hanging worker."""


_opening: dict[int, socket.socket] = {}
"""Thread -> the socket on which it opens a display, so that a frozen server cannot hold it for ever."""


class _WholeAnswers(socket.socket):
    """Receives megabytes at once: python-xlib copies all that it has at every piece that comes."""

    def recv(self, size: int, flags: int = 0) -> bytes:
        got = super().recv(size, flags)
        if size <= self.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) or not got:
            return got  # the library takes what there is
        whole, place = bytearray(size), len(got)
        whole[:place] = got
        view = memoryview(whole)
        while place < size:
            try:
                count = self.recv_into(view[place:])
            except BlockingIOError:
                select.select([self], [], [])
                continue
            if not count:
                return b""  # `_cut`, or the server's end
            place += count
        return bytes(whole)


class _PathConnect:
    """python-xlib's connection functions, which also take an absolute socket path as display name."""

    def get_display(self, display: str) -> tuple[str, str, str, int, int]:
        if display and display.startswith("/"):
            return display, "unix", "", 0, 0
        return _xlib_connect.get_display(display)

    def get_socket(self, name: str, protocol: str, host: str, number: int) -> socket.socket:
        if not name.startswith("/"):
            return _xlib_connect.get_socket(name, protocol, host, number)
        try:
            connection = _WholeAnswers(fileno=connect_unix(name).detach())
            _opening[threading.get_ident()] = connection
            return connection
        except OSError as exc:
            raise Xlib.error.DisplayConnectionError(name, str(exc)) from exc

    def get_auth(
        self, connection: socket.socket, name: str, protocol: str, host: str, number: int
    ) -> tuple[bytes, bytes]:
        if name.startswith("/"):
            return b"", b""
        return _xlib_connect.get_auth(connection, name, protocol, host, number)


# python-xlib has no way to hand in a socket; names that start with "/" are none of its own.
Xlib.protocol.display.connect = _PathConnect()

LOST = (
    Xlib.error.ConnectionClosedError,
    Xlib.error.DisplayError,
    Xlib.error.XError,
    OSError,
    EOFError,
)


class X11Display:
    """An open connection. Every failure of the server is an EnvError of kind infra."""

    pace = Pace()

    def __init__(self, socket_path: str, cpu_account: str = "") -> None:
        self.socket_path = socket_path
        self._cpu_account = cpu_account
        self._opened_by = threading.get_ident()
        with self.guarded():
            self.display = Xlib.display.Display(socket_path)
        _opening.pop(self._opened_by, None)
        # python-xlib's RandR registers its errors without the offset, over the core ones: put those back.
        self.display.display.error_classes.update(Xlib.error.xerror_class)
        self.display.set_error_handler(lambda *_: None)  # e.g. a window that closed while we asked about it
        self.screen = self.display.screen()
        self.root = self.screen.root
        self._damage: int | None = None
        self._atoms: dict[int, str] = {}

    @property
    def size(self) -> tuple[int, int]:
        """Width and height now, pixels: a program may change them, which only a new connection sees."""
        with self.guarded():
            place = self.root.get_geometry()
        return place.width, place.height

    @contextlib.contextmanager
    def guarded(self, limit_s: float = CALL_LIMIT_S) -> Iterator[None]:
        """Turn a lost or frozen server into an EnvError."""
        try:
            with CALLS.cut_after(limit_s, self._cut):
                yield
        except LOST as exc:
            raise EnvError(f"the desktop's display is gone ({self.socket_path}): {exc}") from exc

    def _cut(self) -> None:
        """Called on another thread: makes the blocked call fail."""
        display = getattr(self, "display", None)
        connection = display.display.socket if display else _opening.get(self._opened_by)
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(*LOST):
            self.display.close()

    def atom_name(self, atom: int) -> str:
        """Each is asked for once: it never changes."""
        if (known := self._atoms.get(atom)) is None:
            known = self._atoms[atom] = str(self.display.get_atom_name(atom))
        return known

    # -- pixels -----------------------------------------------------------------------------

    def pixels(self, size: tuple[int, int] | None = None) -> bytes:
        """The whole screen, or so much of it, as BGRX rows, 4 bytes a pixel, without the pointer."""
        width, height = size or self.size
        with self.guarded():
            return self.root.get_image(0, 0, width, height, X.ZPixmap, 0xFFFFFFFF).data

    def cpu_s(self) -> float:
        """CPU seconds of the whole desktop so far; 0 where they are not counted."""
        return used_cpu_s(self._cpu_account)

    # -- change notification ----------------------------------------------------------------

    def forget_changes(self) -> None:
        """Start watching for changes from now on."""
        with self.guarded():
            if self._damage is None:
                self.display.damage_query_version()
                self._damage = self.root.damage_create(damage.DamageReportNonEmpty)
            self.display.damage_subtract(self._damage)
            self.display.sync()
            while self.display.pending_events():
                self.display.next_event()

    def wait_change(self, timeout_s: float) -> bool:
        """True as soon as something was drawn since the last call (or forget_changes)."""
        if self._damage is None:
            self.forget_changes()
        with self.guarded(timeout_s + CALL_LIMIT_S):
            if not self.display.pending_events():
                connection = self.display.display.socket
                if not select.select([connection], [], [], timeout_s)[0]:
                    return False
            changed = False
            while self.display.pending_events():
                self.display.next_event()
                changed = True
            if changed:
                self.display.damage_subtract(self._damage)
                self.display.flush()
            return changed
