"""What only root may do in a virtual machine: set the clock, stir the random number generator.

A clone of a snapshot wakes up with the snapshot's time and the snapshot's randomness, so its host tells it
the time and hands it fresh entropy. The keeper is forked while the agent is still root; the agent asks by
one JSON datagram a call.
"""

import fcntl
import json
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from workers.guest.fork_serving import fork_serving

RNDADDENTROPY = 0x40085203
RNDRESEEDCRNG = 0x5207
MIN_ENTROPY_BYTES = 32


class RootHelperError(Exception):
    """Raised when the keeper could not do what it was asked; the message says why."""


class RootHelper:
    """The agent's handle on its keeper."""

    def __init__(self) -> None:
        self.pid, self._socket = fork_serving(_serve)

    def ask(self, call: str, argument: object) -> dict:
        """One call of CALLS. Raises RootHelperError."""
        self._socket.send(json.dumps({"call": call, "argument": argument}).encode())
        answer = json.loads(self._socket.recv(1 << 16) or b'{"error": "the keeper has ended"}')
        if "error" in answer:
            raise RootHelperError(answer["error"])
        return answer


def set_clock(unix_s: float) -> dict:
    """Set the wall clock; says by how many seconds it moved."""
    moved_s = float(unix_s) - time.time()
    time.clock_settime(time.CLOCK_REALTIME, float(unix_s))
    return {"moved_s": round(moved_s, 3)}


def reseed(entropy_hex: str) -> dict:
    """Mix the host's entropy into the kernel's generator and make it use it from now on."""
    entropy = bytes.fromhex(entropy_hex)
    if len(entropy) < MIN_ENTROPY_BYTES:
        raise ValueError(f"entropy: {len(entropy)} bytes are too few, {MIN_ENTROPY_BYTES} are needed")
    with open("/dev/urandom", "wb", buffering=0) as device:
        fcntl.ioctl(device, RNDADDENTROPY, struct.pack("ii", len(entropy) * 8, len(entropy)) + entropy)
        fcntl.ioctl(device, RNDRESEEDCRNG)
    return {"bytes": len(entropy)}


CALLS: dict[str, Callable[[Any], dict]] = {"set_clock": set_clock, "reseed": reseed}


def _serve(requests: socket.socket) -> None:
    """Answer until the agent is gone."""
    while data := requests.recv(1 << 16):
        try:
            request = json.loads(data)
            answer = CALLS[request["call"]](request["argument"])
        except (OSError, ValueError, TypeError, KeyError) as exc:
            answer = {"error": f"{type(exc).__name__}: {exc}"}
        requests.send(json.dumps(answer).encode())
