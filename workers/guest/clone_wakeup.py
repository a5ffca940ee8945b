"""What a clone's host tells its agent right after it woke up: the time and fresh randomness.

A clone of a snapshot wakes up with the snapshot's time and the snapshot's randomness.
"""

import fcntl
import random
import struct
import time

from workers.guest.http_server import HttpError, Request, Response, Route, json_response

RNDADDENTROPY = 0x40085203
RNDRESEEDCRNG = 0x5207
MIN_ENTROPY_BYTES = 32


class MachineRoutes:
    """Routes of a virtual machine's agent, which is root."""

    def routes(self) -> dict[tuple[str, str], Route]:
        return {("POST", "/clock"): self.clock, ("POST", "/reseed"): self.reseed}

    async def clock(self, request: Request) -> Response:
        """Set the wall clock: {"unix_s": seconds since the epoch} -> {"moved_s"}."""
        unix_s = float(request.json()["unix_s"])
        moved_s = unix_s - time.time()
        time.clock_settime(time.CLOCK_REALTIME, unix_s)
        return json_response({"status": "success", "moved_s": round(moved_s, 3)})

    async def reseed(self, request: Request) -> Response:
        """Fresh randomness: {"entropy": hex of at least 32 bytes} -> {"bytes"}."""
        try:
            num_bytes = reseed(request.json()["entropy"])
        except ValueError as exc:
            raise HttpError(400, str(exc)) from exc
        random.seed()
        return json_response({"status": "success", "bytes": num_bytes})


def reseed(entropy_hex: str) -> int:
    """Mix the host's entropy into the kernel's generator and make it use it from now on; its bytes."""
    entropy = bytes.fromhex(entropy_hex)
    if len(entropy) < MIN_ENTROPY_BYTES:
        raise ValueError(f"entropy: {len(entropy)} bytes are too few, {MIN_ENTROPY_BYTES} are needed")
    with open("/dev/urandom", "wb", buffering=0) as device:
        fcntl.ioctl(device, RNDADDENTROPY, struct.pack("ii", len(entropy) * 8, len(entropy)) + entropy)
        fcntl.ioctl(device, RNDRESEEDCRNG)
    return len(entropy)
