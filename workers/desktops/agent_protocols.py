"""The client of a desktop's agent, by the protocol that its endpoints name."""

from __future__ import annotations

from typing import cast

from workers.desktops.agent_client import AgentClient
from workers.desktops.contract import Endpoints


def open_agent(endpoints: Endpoints) -> AgentClient:
    """Connects on the first call."""
    if endpoints.agent_protocol == "http":
        return AgentClient(endpoints.agent)
    from workers.desktops.windows.qemu_guest_agent_client import GuestAgentClient

    # The same verbs without HTTP: execute, launch, put, get, close, platform.
    return cast(AgentClient, GuestAgentClient(endpoints.agent))
