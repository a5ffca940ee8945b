"""Why a child ended, in one line, from its code and the end of its log: what people read first."""

from __future__ import annotations

import re
import signal

MAX_CHARS = 500
NAMED_ERROR = re.compile(r"^(?:\[[^\]]*\]:\s*)?([\w.]*(?:Error|Exception|Interrupt|Exit)\b.*)$")
"""The last line of a traceback, perhaps behind torch's `[rank0]: `."""
ENDED_BY_SIGNAL = re.compile(
    r"^rank (?P<rank>\d+) of the trainer was ended by (?P<signal>SIG\w+)$", re.MULTILINE
)
"""What `training.distributed.launch` says of the first rank that crashed."""
RULE = re.compile(r"[=\-_*\s]*")


BY_HAND = "by hand, or because the machine ran out of memory (`dmesg` says which)"


def how_it_ended(code: int) -> str:
    """Words for a return code as `subprocess` gives it, to follow the child's name."""
    if code >= 0:
        return f"ended with code {code}"
    name = signal.Signals(-code).name
    return f"was ended by {name}" + (f", {BY_HAND}" if name == "SIGKILL" else "")


def why_trainer_ended(code: int, log_tail: str) -> str:
    """A sentence without its dot. The log's tail should hold a whole traceback."""
    if code < 0:  # the launcher itself; a rank's end is told by its launcher
        return f"the trainer {how_it_ended(code)}"
    if error := _named_error(log_tail):
        return f"the trainer ended with code {code}: {error}"
    if found := ENDED_BY_SIGNAL.search(log_tail):
        words = f"rank {found['rank']} of the trainer was ended by {found['signal']}"
        if found["signal"] == "SIGKILL":
            words += f": {BY_HAND}"
        return words
    if "Traceback (most recent call last)" in log_tail:
        return f"the trainer ended with code {code}; its log breaks off in a traceback, as on a full disk"
    said = [line.strip() for line in log_tail.splitlines() if not RULE.fullmatch(line)]
    return f"the trainer ended with code {code}: {said[-1][:MAX_CHARS] if said else 'no output'}"


def _named_error(log_tail: str) -> str:
    """The last error of the trainer's own; "" when there is none."""
    for line in reversed(log_tail.splitlines()):
        found = NAMED_ERROR.match(line.strip())
        if found:
            return found[1][:MAX_CHARS]
    return ""
