"""Tokens of a policy server: the attempt's own opens all of it, a host's only what the host began.

A host's token is made from the attempt's, so that neither side has to send a list to the other.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Opener:
    """Who asks a policy server."""

    host: str = ""
    """Name of an env host in hex; "" = the gpu worker, which may do everything."""
    joined_ms: int = 0
    """When the host joined, in ms since the epoch; 0 = a machine of the installation's own."""

    def session_name(self, trajectory_id: str) -> str:
        """Of its own: no host names the session of another one."""
        return f"{self.host}.{self.joined_ms}/{trajectory_id}" if self.host else trajectory_id


def host_token(secret: str, host: str, joined_ms: int = 0) -> str:
    """Of one env host, for the attempt with this token."""
    named = f"{host.encode().hex()}.{joined_ms}"
    return f"{named}.{_signature(secret, named)}"


@dataclass(slots=True)
class PolicyAccess:
    """Whom one policy server lets in."""

    secret: str
    ended_ms: dict[str, int] = field(default_factory=dict)
    """Host in hex -> tokens from before this moment are ended."""

    def opener_of(self, token: str) -> Opener | None:
        """Whose token it is; None when it was not made for this server, or has ended."""
        if hmac.compare_digest(token.encode(), self.secret.encode()):
            return Opener()
        named, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(), _signature(self.secret, named).encode()):
            return None
        host, _, joined_ms = named.partition(".")
        opener = Opener(host, int(joined_ms))
        return None if opener.joined_ms < self.ended_ms.get(host, 0) else opener

    def end(self, hosts: Mapping[str, int]) -> None:
        """Host -> moment (ms since the epoch) from before which its tokens are no longer good."""
        for name, until in hosts.items():
            host = name.encode().hex()
            self.ended_ms[host] = max(until, self.ended_ms.get(host, 0))


def _signature(secret: str, named: str) -> str:
    return hmac.new(secret.encode(), named.encode(), hashlib.sha256).hexdigest()
