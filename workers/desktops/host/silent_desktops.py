"""Ends desktops that have fallen silent: a frozen one would hold its trajectory until every time limit of
that has passed. Processes of this machine are asked by their agent, a virtual machine by its monitor: what
its guest does is the trajectory's matter, and it may be paused on purpose.
"""

import asyncio
import logging
import time
from typing import Protocol, runtime_checkable

from workers.desktops.agent_client import AgentClient
from workers.desktops.contract import EnvError
from workers.desktops.host.desktop_record import DesktopRecord
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


def leased_desktops(host: DeskHost) -> list[DesktopRecord]:
    return [record for record in host.desktops.values() if record.phase is Phase.LEASED]


async def check_answers(record: DesktopRecord) -> None:
    """Ask it for an answer; end it when it has been silent for too long."""
    generation, instance = record.generation, record.instance
    asked_at = time.monotonic()
    if isinstance(instance, Answering):
        answered = await instance.is_alive(ANSWER_S)
    elif instance is not None and instance.endpoints.agent:
        answered = await asyncio.to_thread(_answers, instance.endpoints.agent)
    else:
        return
    if record.generation != generation or record.instance is not instance:
        return
    if answered:
        record.answered_at = max(record.answered_at, asked_at)
    elif record.phase is Phase.LEASED and time.monotonic() - record.answered_at > SILENCE_S:
        log.warning("ending %s: it does not answer", record.desktop_id)
        record.end(f"it did not answer for {SILENCE_S:.0f} s")


def _answers(address: str) -> bool:
    try:
        with AgentClient(address, timeout_s=ANSWER_S) as agent:
            agent.call("GET", "/")
    except EnvError:
        return False
    return True
