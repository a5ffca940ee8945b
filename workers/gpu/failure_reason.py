"""Why a child ended, in one line, from its code and the end of its log: what people read first."""

import re
import signal

MAX_CHARS = 500
NAMED_ERROR = re.compile(r"^(?:\[[^\]]*\]:\s*)?([\w.]*(?:Error|Exception|Interrupt|Exit)\b.*)$")
"""The last line of a traceback, perhaps behind torch's `[rank0]: `."""
ENDED_BY_SIGNAL = re.compile(
    r"^rank (?P<rank>\d+) of the trainer was ended by (?P<signal>SIG\w+)$", re.MULTILINE
)
"""What `training.distributed.launch` says of the first rank that crashed."""
INCOMPLETE = re.compile(r"^(?:\[[^\]]*\]:\s*)?[\w.]*GangIncomplete: (?P<what>.+)$", re.MULTILINE)
"""A rank that waited in vain for those of other hosts."""
SIGNALS_FROM = 128
"""The launcher's code after signal N of a rank is 128 + N. An abort comes after an error that says more."""
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
    if code < 0:  # the launcher itself; a rank's end is reported by its launcher
        return f"the trainer {how_it_ended(code)}"
    if incomplete := INCOMPLETE.search(log_tail):
        return incomplete["what"]
    killed = _killed_rank(log_tail)
    if killed and "SIGABRT" not in killed and code > SIGNALS_FROM:
        return killed  # what the other ranks say of it is that their peer has gone
    if error := _named_error(log_tail):
        return f"the trainer ended with code {code}: {error}"
    if killed:
        return killed
    if "Traceback (most recent call last)" in log_tail:
        return f"the trainer ended with code {code}; its log breaks off in a traceback, as on a full disk"
    said = [line.strip() for line in log_tail.splitlines() if not RULE.fullmatch(line)]
    return f"the trainer ended with code {code}: {said[-1][:MAX_CHARS] if said else 'no output'}"


def waited_for_hosts(log_tail: str) -> bool:
    """True when its ranks gave up waiting for those of other hosts."""
    return bool(INCOMPLETE.search(log_tail))


def _killed_rank(log_tail: str) -> str:
    """The rank whose end by a signal ended the others; "" when there is none."""
    found = ENDED_BY_SIGNAL.search(log_tail)
    if not found:
        return ""
    words = f"rank {found['rank']} of the trainer was ended by {found['signal']}"
    return f"{words}: {BY_HAND}" if found["signal"] == "SIGKILL" else words


def _named_error(log_tail: str) -> str:
    """The last error of the trainer's own; "" when there is none."""
    for line in reversed(log_tail.splitlines()):
        found = NAMED_ERROR.match(line.strip())
        if found:
            return found[1][:MAX_CHARS]
    return ""
