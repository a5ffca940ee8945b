"""What programs are doing at this moment: which compute, and which sleep until a time of their own.

A program that answers a click by a timer uses no processor until then, and draws nothing. The kernel tells in
which call a thread sleeps and with what time limit (/proc/PID/syscall): that is the timer.
"""

import os
import platform
import struct
import time
from collections.abc import Iterable

MAX_S = 5.0
"""Later timers are of no interest: autosave, caches, keep-alives."""
WORKING = "RD"
"""Thread states: runs or could, waits for the disk."""
FUTEX_PRIVATE, FUTEX_REALTIME = 0x80, 0x100
FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_LOCK_PI, FUTEX_WAIT_REQUEUE = 0, 9, 6, 11
TIMER_ABSTIME = 1
# Number of the call -> how its time limit is given, and which argument it is.
MILLISECONDS, SPAN, SPAN_US, FUTEX, CLOCK = "milliseconds", "span", "span_us", "futex", "clock"
CALLS = {
    "x86_64": {
        7: (MILLISECONDS, 2), 232: (MILLISECONDS, 3), 281: (MILLISECONDS, 3), 441: (SPAN, 3), 271: (SPAN, 2),
        270: (SPAN, 4), 23: (SPAN_US, 4), 35: (SPAN, 0), 230: (CLOCK, 2), 202: (FUTEX, 3),
    },
    "aarch64": {
        22: (MILLISECONDS, 3), 441: (SPAN, 3), 73: (SPAN, 2), 72: (SPAN, 4), 101: (SPAN, 0), 115: (CLOCK, 2),
        98: (FUTEX, 3),
    },
}.get(platform.machine(), {})  # fmt: skip
"""poll, epoll_wait, epoll_pwait, epoll_pwait2, ppoll, pselect6, select, nanosleep, clock_nanosleep, futex."""


def look_at(programs: Iterable[int], servers: Iterable[int]) -> dict:
    """{"working": threads of both that compute, "timers": [program, seconds until it goes on by itself]}."""
    working, timers = 0, []
    for pid in servers:
        working += sum(_state(pid, thread) in WORKING for thread in _threads(pid))
    for pid in programs:
        working += sum(_state(pid, thread) in WORKING for thread in _threads(pid))
        left_s = _sleeps_for(pid)
        if left_s is not None and 0 < left_s <= MAX_S:
            timers.append([_name(pid), round(left_s, 4)])
    return {"working": working, "timers": timers}


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def _state(pid: int, thread: str) -> str:
    try:
        with open(f"/proc/{pid}/task/{thread}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return "X"


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _sleeps_for(pid: int) -> "float | None":
    """Seconds of the call in which the main thread sleeps, counted from its start; None = for ever."""
    try:
        with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
            number, *arguments = file.read().split()
        kind, place = CALLS.get(int(number), ("", 0))
        values = [int(word, 16) for word in arguments[:6]]
        return _limit_s(pid, kind, values, values[place]) if kind else None
    except (OSError, ValueError, IndexError, struct.error):  # it runs, has ended, or is not ours to see
        return None


def _limit_s(pid: int, kind: str, values: list[int], value: int) -> "float | None":
    if kind == MILLISECONDS:
        limit = value & 0xFFFFFFFF
        return None if limit & 0x80000000 else limit / 1000
    operation = values[1] & ~FUTEX_PRIVATE & ~FUTEX_REALTIME
    known = (FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_LOCK_PI, FUTEX_WAIT_REQUEUE)
    if not value or (kind == FUTEX and operation not in known):
        return None
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        seconds, fraction = struct.unpack("qq", os.pread(memory.fileno(), 16, value))
    limit_s = seconds + fraction / (1e6 if kind == SPAN_US else 1e9)
    if kind == CLOCK and values[1] & TIMER_ABSTIME:
        return limit_s - time.clock_gettime(values[0])
    if kind == FUTEX and operation != FUTEX_WAIT:
        is_realtime = values[1] & FUTEX_REALTIME or operation == FUTEX_LOCK_PI
        return limit_s - time.clock_gettime(time.CLOCK_REALTIME if is_realtime else time.CLOCK_MONOTONIC)
    return limit_s
