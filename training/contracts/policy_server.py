"""What may be asked of a policy server, the table of its routes, and tokens that open them.

A host's token is made from the attempt's, so that neither side has to send a list to the other.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from training.contracts.eye_test import EyeTestAnswer, EyeTestRequest
from training.contracts.route_types import Nothing, Route
from training.contracts.types import Completion, Wire
from training.contracts.weight_requests import WEIGHTS_REQUEST, Canary, WeightsAnswer, WeightsRequest


class Health(Wire):
    """The server is ready; until then it answers 503 with what it is doing and for how long."""

    status: str = "ok"
    policy_version: int
    model: str
    """Checkpoint folder."""
    needs_weights: bool = Field(default=False, exclude_if=lambda needs: not needs)
    """A part of the engine was started again and generates only after a weight sync; absent = false."""


class TurnRequest(Wire):
    """One turn of a trajectory, beside its screenshot."""

    trajectory_id: str
    turn_index: int = Field(ge=0)
    """The next one; an earlier one is answered again as it was."""
    text: str = ""
    temperature: float = Field(default=1.0, ge=0, le=2)
    max_tokens: int = Field(default=40, ge=1, le=8192)


class PrefixTurn(Wire):
    """One turn of the policy as it was recorded."""

    text: str = ""
    completion: Completion


class PrefixRequest(Wire):
    """Recorded turns that a trajectory begins with, beside their screenshots."""

    trajectory_id: str
    turns: tuple[PrefixTurn, ...]


class PrefixTaken(Wire):
    """Where the trajectory goes on."""

    next_turn: int


class TrajectoryName(Wire):
    """A trajectory of this server."""

    trajectory_id: str


class Waited(Wire):
    """How long the trajectory's running turn has waited for the engine to be there."""

    waited_s: float
    """As `Completion.waited_s`, so far; 0 when no turn runs."""


class EndedHosts(Wire):
    """Hosts whose tokens are no longer good."""

    hosts: dict[str, int]
    """Name -> moment in ms since the epoch: tokens of who joined before it."""


HEALTH = Route("GET", "/health", Nothing, Health, "503 with `error.message` while it starts.")
TURN = Route(
    "POST",
    "/trajectories/{trajectory_id}/turns",
    TurnRequest,
    Completion,
    "The completion of a turn; 409 names the expected `turn_index`. Repeating changes nothing.",
    files="`screenshot` (PNG, absent when prompt.observation has none)",
)
PREFIX = Route(
    "POST",
    "/trajectories/{trajectory_id}/prefix",
    PrefixRequest,
    PrefixTaken,
    "Begin a trajectory with recorded turns. 409 `prefix_mismatch` when a completion would not stand where "
    "it was sampled, `wrong_turn` when the trajectory has turns of its own. Repeating changes nothing.",
    files="`screenshot-0` ... (PNG)",
)
WAITED = Route(
    "GET",
    "/trajectories/{trajectory_id}/waited",
    TrajectoryName,
    Waited,
    "Requested when a turn's answer is late: what was waited counts against no limit.",
)
FORGET = Route("DELETE", "/trajectories/{trajectory_id}", TrajectoryName, Nothing, "Forget a trajectory.")
_weights_request: Any = WEIGHTS_REQUEST
WEIGHTS: Route[WeightsRequest, WeightsAnswer] = Route(
    "POST",
    "/weights",
    _weights_request,
    WeightsAnswer,
    "One step of a weight sync; 400 when the engine refuses it.",
)
CANARY = Route("POST", "/canary", Nothing, Canary, "The engine's logprobs of the fixed canary prompt.")
EYES = Route(
    "POST",
    "/eyes",
    EyeTestRequest,
    EyeTestAnswer,
    "What the engine is, its logprobs of fixed answers to fixed pictures or texts, and its greedy clicks.",
)
ENGINE = Route(
    "GET",
    "/engine",
    Nothing,
    dict[str, Any],
    "`{name, policy_version, servers: [{url, gpus, pid, is_ready}], image_folder, num_restarts, usage}`; "
    "transformers has no servers.",
)
SLEEP = Route("POST", "/sleep", Nothing, Nothing, "A colocated engine gives the GPUs' memory; turns wait.")
END_HOSTS = Route("POST", "/hosts/end", EndedHosts, Nothing, "Tokens of these hosts open nothing any more.")
WAKE = Route("POST", "/wake", Nothing, Nothing, "It takes the memory back.")

ROUTES: tuple[Route[Any, Any], ...] = tuple(value for value in vars().values() if isinstance(value, Route))
"""All of the above."""


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
