"""What a browser sends, taken apart: one state machine that lets watching pass and input only when allowed.

    VERSION -> SECURITY -> INIT -> MESSAGES
The proxy is the RFB server for the browser and the RFB client for the desktop, so neither learns anything
of the other: no host, no port, no password, no security type, no name. Nothing is forwarded that was not
understood, and what a message claims to be long is skipped without being kept.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from webapp.screens.rfb.protocol import (
    CONTROL_ENCODINGS,
    FIXED_LENGTHS,
    MAX_ENCODINGS,
    SECURITY_NONE,
    VERSION,
    VERSION_LENGTH,
    WATCHING_ENCODINGS,
    ClientMessage,
    InputEvent,
    KeyEvent,
    PointerEvent,
    RfbError,
    key_bytes,
    pointer_bytes,
    read_key,
    read_pointer,
)

SECURITY_OFFER = bytes([1, SECURITY_NONE])
SECURITY_OK = bytes(4)
MAX_CUT_TEXT = 1 << 24


class Stage(StrEnum):
    VERSION = "version"
    SECURITY = "security"
    INIT = "init"
    MESSAGES = "messages"


@dataclass(slots=True)
class Heard:
    """What some bytes from the browser meant."""

    reply: bytearray = field(default_factory=bytearray)
    """For the browser."""
    forward: bytearray = field(default_factory=bytearray)
    """For the desktop."""
    inputs: list[InputEvent] = field(default_factory=list)
    """Those of the forwarded messages that act on the desktop, in order."""


class BrowserFilter:
    """One browser's half of a connection."""

    def __init__(self, server_init: bytes, *, wants_control: bool) -> None:
        self.may_act = False
        """Whether input passes at this moment; the owner of the connection says so."""
        self._server_init = server_init
        self._encodings = CONTROL_ENCODINGS if wants_control else WATCHING_ENCODINGS
        self._stage = Stage.VERSION
        self._waiting = bytearray()
        self._to_skip = 0
        self._held_keys: dict[int, None] = {}
        self._pointer = PointerEvent(0, 0, 0)

    def greeting(self) -> bytes:
        """What the browser hears first."""
        return VERSION

    def hear(self, data: bytes) -> Heard:
        """Take bytes in whatever pieces they come. Raises RfbError, after which nothing may be fed."""
        heard = Heard()
        self._waiting += data
        while self._step(heard):
            pass
        return heard

    def release_all(self) -> bytes:
        """Let go of every key and button that this browser holds down on the desktop."""
        released = b"".join(key_bytes(KeyEvent(keysym, False)) for keysym in self._held_keys)
        self._held_keys.clear()
        if self._pointer.buttons:
            self._pointer = PointerEvent(0, self._pointer.x, self._pointer.y)
            released += pointer_bytes(self._pointer)
        return released

    # -- one step: True when something was consumed -------------------------------------------

    def _step(self, heard: Heard) -> bool:
        if self._to_skip:
            return self._skip()
        if not self._waiting:
            return False
        steps: dict[Stage, Callable[[Heard], bool]] = {
            Stage.VERSION: self._version,
            Stage.SECURITY: self._security,
            Stage.INIT: self._init,
            Stage.MESSAGES: self._message,
        }
        return steps[self._stage](heard)

    def _skip(self) -> bool:
        num_gone = min(self._to_skip, len(self._waiting))
        del self._waiting[:num_gone]
        self._to_skip -= num_gone
        return num_gone > 0

    def _version(self, heard: Heard) -> bool:
        if len(self._waiting) < VERSION_LENGTH:
            return False
        if bytes(self._take(VERSION_LENGTH)) != VERSION:
            raise RfbError("the browser must speak RFB 3.8")
        heard.reply += SECURITY_OFFER
        self._stage = Stage.SECURITY
        return True

    def _security(self, heard: Heard) -> bool:
        if self._take(1)[0] != SECURITY_NONE:
            raise RfbError("the browser chose a security type that was not offered")
        heard.reply += SECURITY_OK
        self._stage = Stage.INIT
        return True

    def _init(self, heard: Heard) -> bool:
        self._take(1)  # wants the desktop for itself or shared: it is always shared
        heard.reply += self._server_init
        self._stage = Stage.MESSAGES
        return True

    def _message(self, heard: Heard) -> bool:
        kind = self._waiting[0]
        if kind == ClientMessage.SET_ENCODINGS:
            return self._set_encodings(heard)
        if kind == ClientMessage.CUT_TEXT:
            return self._drop_cut_text()
        if kind == ClientMessage.SET_DESKTOP_SIZE:
            return self._drop_desktop_size()
        try:
            length = FIXED_LENGTHS[ClientMessage(kind)]
        except ValueError as error:
            raise RfbError(f"unknown client message {kind}") from error
        if len(self._waiting) < length:
            return False
        if kind == ClientMessage.QEMU and self._waiting[1] != 0:
            raise RfbError("unknown QEMU client message")
        self._whole_message(ClientMessage(kind), bytes(self._take(length)), heard)
        return True

    def _whole_message(self, kind: ClientMessage, message: bytes, heard: Heard) -> None:
        if kind in (ClientMessage.SET_PIXEL_FORMAT, ClientMessage.UPDATE_REQUEST):
            heard.forward += message
        elif kind in (ClientMessage.KEY, ClientMessage.POINTER) and self.may_act:
            self._input(read_key(message) if kind == ClientMessage.KEY else read_pointer(message), heard)

    def _input(self, event: InputEvent, heard: Heard) -> None:
        """Written anew rather than copied: padding bytes of the browser do not travel."""
        if isinstance(event, PointerEvent):
            self._pointer = event
            heard.forward += pointer_bytes(event)
        else:
            if event.is_down:
                self._held_keys[event.keysym] = None
            else:
                self._held_keys.pop(event.keysym, None)
            heard.forward += key_bytes(event)
        heard.inputs.append(event)

    def _set_encodings(self, heard: Heard) -> bool:
        if len(self._waiting) < 4:
            return False
        count = int.from_bytes(self._waiting[2:4], "big")
        if count > MAX_ENCODINGS:
            raise RfbError(f"{count} encodings; at most {MAX_ENCODINGS}")
        if len(self._waiting) < 4 + 4 * count:
            return False
        message = bytes(self._take(4 + 4 * count))
        wanted = [
            int.from_bytes(message[at : at + 4], "big", signed=True) for at in range(4, len(message), 4)
        ]
        kept = [encoding for encoding in wanted if encoding in self._encodings]
        heard.forward += bytes([ClientMessage.SET_ENCODINGS, 0]) + len(kept).to_bytes(2, "big")
        heard.forward += b"".join(encoding.to_bytes(4, "big", signed=True) for encoding in kept)
        return True

    def _drop_cut_text(self) -> bool:
        """An unrecorded clipboard would make a demonstration that cannot be repeated."""
        if len(self._waiting) < 8:
            return False
        length = int.from_bytes(self._waiting[4:8], "big", signed=True)
        if not 0 <= length <= MAX_CUT_TEXT:
            raise RfbError(f"clipboard text of {length} bytes")
        self._drop(8 + length)
        return True

    def _drop_desktop_size(self) -> bool:
        if len(self._waiting) < 8:
            return False
        self._drop(8 + 16 * self._waiting[6])
        return True

    def _drop(self, length: int) -> None:
        self._to_skip = length

    def _take(self, length: int) -> bytearray:
        taken = self._waiting[:length]
        del self._waiting[:length]
        return taken
