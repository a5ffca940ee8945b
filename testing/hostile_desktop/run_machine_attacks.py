"""Every attack against a whole virtual machine, and against one without defences."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from testing.hostile_desktop.machine_attacks import TRIES
from testing.hostile_desktop.machine_stage import RESET, Machines, MachineStage
from testing.hostile_desktop.run_attacks import Verdict
from testing.hostile_desktop.stage import Attack
from workers.desktops.contract import EnvError

TRACES = ("~/hostile.py", "~/report", "~/answer.txt")


async def verdicts(
    machines: Machines, attacks: tuple[Attack, ...], *, weakened: bool
) -> AsyncIterator[Verdict]:
    """One after the other: a whole machine takes them all, a weak one those that cannot ruin it."""
    several = [attack for attack in attacks if attack in TRIES or not weakened]
    for group in [several, *([attack] for attack in attacks if attack not in several)]:
        if group:
            without = "+".join(attack.without for attack in group) if weakened else ""
            async with machines.stage(without) as there:
                for attack in group:
                    verdict = await asyncio.to_thread(perform, attack, there)
                    if not weakened and (RESET in attack.without or attack is group[-1]):
                        verdict.is_next_clean = await asyncio.to_thread(is_next_clean, there)
                    yield verdict


def perform(attack: Attack, there: MachineStage) -> Verdict:
    """One attack in this machine."""
    there.canary.heard.clear()
    there.prepare()
    there.attack(attack.program)
    report = there.report()
    succeeded = attack.won(there)
    return Verdict(attack.name, attack.without, succeeded, True, report[:200])


def is_next_clean(there: MachineStage) -> bool:
    """A clone in its place shows nothing; what runs in it was compared with the template already."""
    there.reset()
    try:
        return all(there.agent.get(path) is None for path in TRACES)
    except EnvError:
        return False
