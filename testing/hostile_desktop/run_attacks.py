"""Every attack against the sandbox as it is, and against one without the defence that holds it off.

python -m testing.hostile_desktop.run_attacks NAME...    a JSON list per attack, as `expect_held` reads it
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass

from testing.hostile_desktop.escape import ESCAPE, ROOT
from testing.hostile_desktop.exhaust import EXHAUST
from testing.hostile_desktop.forge import FORGE
from testing.hostile_desktop.mislead import MISLEAD
from testing.hostile_desktop.outlive import OUTLIVE
from testing.hostile_desktop.reach import attacks
from testing.hostile_desktop.stage import Attack, Canaries, Stage, canaries, stage

WEAK_TRIES = 3


@dataclass
class Verdict:
    """What one attack did."""

    name: str
    without: str
    succeeded: bool
    is_next_clean: bool
    """The desktop after a reset shows no trace, or was refused, so that the desk host rebuilds it."""
    report: str

    def tell(self, *, weakened: bool) -> None:
        """One line for another process."""
        row = [weakened, self.name, self.succeeded, self.is_next_clean, self.report]
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()


def all_attacks(canary: Canaries) -> tuple[Attack, ...]:
    """Those that a desktop of an ordinary user is to withstand."""
    return (*FORGE, *MISLEAD, *OUTLIVE, *ESCAPE, *attacks(canary), *EXHAUST)


def attacks_on_root() -> tuple[Attack, ...]:
    """Those that need a desk host with root's user number to succeed."""
    return ROOT


async def run_attack(attack: Attack, canary: Canaries, *, weakened: bool) -> Verdict:
    """One attack in a fresh desktop of this process's user."""
    canary.heard.clear()
    async with stage(canary, attack.without if weakened else "") as there:
        return await asyncio.to_thread(_perform, attack, there)


async def run_until_it_works(attack: Attack, canary: Canaries) -> Verdict:
    """The attack without its defence; again when a busy machine kept it from its moment."""
    for _ in range(WEAK_TRIES - 1):
        if (verdict := await run_attack(attack, canary, weakened=True)).succeeded:
            return verdict
    return await run_attack(attack, canary, weakened=True)


def _perform(attack: Attack, there: Stage) -> Verdict:
    there.attack(attack.program)
    report = there.report()
    succeeded = attack.won(there)
    is_clean = True if there.weakened else is_clean_or_refused(there)
    return Verdict(attack.name, attack.without, succeeded, is_clean, report[:200])


def is_clean_or_refused(there: Stage) -> bool:
    """Reset it as the desk host does; a refusal means a new desktop."""
    if not there.reset():
        return True
    files = there.run(
        "find ~ /tmp /dev/shm $XDG_RUNTIME_DIR /run/desk ! -type d | grep -v -e /.config/ -e /bus$ -e X0$"
    )
    programs = set(there.run("ps -e -o comm=").split())
    return not files and programs == {"sleep", "dbus-daemon", "sh", "ps"}


async def main(names: list[str]) -> None:
    with canaries() as canary:
        for attack in all_attacks(canary):
            if attack.name in names:
                (await run_attack(attack, canary, weakened=False)).tell(weakened=False)
                (await run_until_it_works(attack, canary)).tell(weakened=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
