"""Ends desktops whose agent has fallen silent: a frozen one would hold its trajectory until every time limit
of that has passed.
"""

from __future__ import annotations

import asyncio
import logging
import time

from workers.deskhost.host import DeskHost
from workers.deskhost.managed import Managed
from workers.deskhost.models import Phase
from workers.providers.agent_client import AgentClient
from workers.providers.base import Capability, EnvError

log = logging.getLogger("deskhost")

SILENCE_S = 12.0
"""An agent answers within milliseconds, on a machine ten times overloaded within a second or two."""
ANSWER_S = 6.0


def listened_to(host: DeskHost) -> list[Managed]:
    """Leased desktops that are processes of this machine; a virtual machine may be paused on purpose."""
    in_place = {
        name
        for name, provider in host.providers.items()
        if Capability.RESET_IN_PLACE in provider.capabilities
    }
    return [m for m in host.desktops.values() if m.phase is Phase.LEASED and m.provider in in_place]


async def listen(managed: Managed) -> None:
    """Ask the agent for a sign of life; end the desktop when there has been none for too long."""
    generation, living = managed.generation, managed.living
    if living is None or not living.endpoints.agent:
        return
    asked_at = time.monotonic()
    answered = await asyncio.to_thread(_answers, living.endpoints.agent)
    if managed.generation != generation or managed.living is not living:
        return
    if answered:
        managed.heard_at = max(managed.heard_at, asked_at)
    elif managed.phase is Phase.LEASED and time.monotonic() - managed.heard_at > SILENCE_S:
        log.warning("ending %s: its agent is silent", managed.desktop_id)
        managed.end(f"its agent did not answer for {SILENCE_S:.0f} s")


def _answers(address: str) -> bool:
    try:
        with AgentClient(address, timeout_s=ANSWER_S) as agent:
            agent.call("GET", "/")
    except EnvError:
        return False
    return True
