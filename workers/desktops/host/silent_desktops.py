"""Ends desktops that have fallen silent: a frozen one would hold its trajectory until every time limit of
that has passed. Processes of this machine are asked by their agent, a virtual machine by its monitor: what
its guest does is the trajectory's matter, and it may be paused on purpose.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Protocol, runtime_checkable

from workers.desktops.agent_client import AgentClient
from workers.desktops.contract import EnvError
from workers.desktops.host.desktop_record import Managed
from workers.desktops.host.host import DeskHost
from workers.desktops.host.messages import Phase

log = logging.getLogger("deskhost")

SILENCE_S = 12.0
"""They answer within milliseconds, on a machine ten times overloaded within a second or two."""
ANSWER_S = 6.0


@runtime_checkable
class Answering(Protocol):
    """A provider's desktop that is asked in another way than by its agent."""

    async def is_alive(self, limit_s: float) -> bool:
        """Whether it answers within the limit."""


def listened_to(host: DeskHost) -> list[Managed]:
    """Desktops in somebody's hands."""
    return [managed for managed in host.desktops.values() if managed.phase is Phase.LEASED]


async def listen(managed: Managed) -> None:
    """Ask for a sign of life; end the desktop when there has been none for too long."""
    generation, living = managed.generation, managed.living
    asked_at = time.monotonic()
    if isinstance(living, Answering):
        answered = await living.is_alive(ANSWER_S)
    elif living is not None and living.endpoints.agent:
        answered = await asyncio.to_thread(_answers, living.endpoints.agent)
    else:
        return
    if managed.generation != generation or managed.living is not living:
        return
    if answered:
        managed.heard_at = max(managed.heard_at, asked_at)
    elif managed.phase is Phase.LEASED and time.monotonic() - managed.heard_at > SILENCE_S:
        log.warning("ending %s: it is silent", managed.desktop_id)
        managed.end(f"it did not answer for {SILENCE_S:.0f} s")


def _answers(address: str) -> bool:
    try:
        with AgentClient(address, timeout_s=ANSWER_S) as agent:
            agent.call("GET", "/")
    except EnvError:
        return False
    return True
