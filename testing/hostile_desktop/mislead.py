"""Attacks on the evaluator's reading: files swapped while it looks, or spoiled so that there is no score."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count, takewhile

from testing.hostile_desktop.exhaust import command_starves, evaluator_starves
from testing.hostile_desktop.stage import RIGHT, Attack, Attacked

ANSWER = "/home/user/answer.txt"
OTHER = "other"
LOOKS, WEAK_LOOKS_S = 300, 120.0
"""A swap takes microseconds; on a busy machine few of them fall between two steps of a look, so a desktop
without its defence is looked at for longer."""
SWAP = f"""
@make
report('begun')
end = time.time() + 300
while time.time() < end:
    syscall(316, -100, b'{ANSWER}', -100, b'/home/user/other', 2)
"""
"""316: renameat2, which exchanges two names at once."""
PIPE = SWAP.replace("@make", "os.mkfifo('/home/user/other')")
LINK = SWAP.replace("@make", "os.symlink('/etc/shadow', '/home/user/other')")
CONTENT = SWAP.replace(
    "@make",
    f"open('{ANSWER}', 'w').write('{RIGHT}'); open('/home/user/other', 'w').write('{OTHER}')",
)
CLOSED = f"os.chmod('{ANSWER}', 0); report('begun')"
LOOP = f"os.unlink('{ANSWER}'); os.symlink('{ANSWER}', '{ANSWER}'); report('begun')"
SOCKET = f"os.unlink('{ANSWER}'); s = socket.socket(socket.AF_UNIX); s.bind('{ANSWER}'); report('begun')"
CLOSED_HOME = "report('begun'); time.sleep(1); os.chmod('/home/user', 0)"


def looks(stage: Attacked) -> Iterator[int]:
    """As many as are worth while."""
    ends = time.monotonic() + (WEAK_LOOKS_S if stage.weakened else 0.0)
    return takewhile(lambda number: number < LOOKS or time.monotonic() < ends, count())


def starves_once(stage: Attacked) -> bool:
    return any(stage.score() != 0.0 for _ in looks(stage))


def contradiction_holds(stage: Attacked) -> bool:
    """One file has two contents, says an evaluator of two parts."""
    return any(stage.score_parts(RIGHT, OTHER) == 1.0 for _ in looks(stage))


def command_starves_later(stage: Attacked) -> bool:
    stage.wait(2.0)
    return command_starves(stage)


MISLEAD = (
    Attack("put a pipe in a file's place while it is read", PIPE, starves_once, "reading"),
    Attack("show each part of the evaluator another content", CONTENT, contradiction_holds, "reading"),
    Attack("close the file to the evaluator", CLOSED, evaluator_starves, "reading"),
    Attack("a link to itself", LOOP, evaluator_starves, "reading"),
    Attack("a socket in the file's place", SOCKET, evaluator_starves, "reading"),
    Attack("close HOME to the evaluator's command", CLOSED_HOME, command_starves_later, "judging"),
)
"""In desktops of any kind."""
