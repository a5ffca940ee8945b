"""The client of a desktop's agent, by the protocol that its endpoints name."""

from __future__ import annotations

from typing import cast

from workers.providers.agent_client import AgentClient
from workers.providers.base import Endpoints


def open_agent(endpoints: Endpoints) -> AgentClient:
    """Connects on the first call."""
    if endpoints.agent_protocol == "http":
        return AgentClient(endpoints.agent)
    from workers.windows.guest_agent import GuestAgentClient

    # The same verbs without HTTP: execute, launch, put, get, close, platform.
    return cast(AgentClient, GuestAgentClient(endpoints.agent))
