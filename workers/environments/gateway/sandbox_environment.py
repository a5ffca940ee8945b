"""One sandbox per trajectory: made when it starts, deleted when it ends.

    create (or AtCapacity: parked) -> setup -> turns -> evaluate -> delete
Setup and evaluation are ours, by commands in the sandbox.
"""

import hashlib
import logging
import secrets
from collections.abc import Sequence
from typing import Self

import redis
from django.conf import settings

from training.contracts.config import GatewayConfig
from training.contracts.metric_finding import MetricFinding
from training.contracts.milestone import Milestone
from training.contracts.types import Action, Task
from workers.desktops.contract import EnvError
from workers.desktops.frame import Frame
from workers.environments.back_off import BackOff
from workers.environments.contract import AtCapacity, EnvironmentRequest
from workers.environments.gateway.desktop import SandboxDesktop
from workers.environments.gateway.open_vendor import open_vendor
from workers.environments.gateway.vendor_contract import Sandbox, SandboxRequest, SandboxVendor
from workers.tasks import prepare_and_score

log = logging.getLogger(__name__)


class GatewayEnvironment:
    provider = "gateway"

    def __init__(self, vendor: SandboxVendor, sandbox: Sandbox, request: EnvironmentRequest) -> None:
        knobs = request.knobs
        assert isinstance(knobs, GatewayConfig)
        self.sandbox = sandbox
        self._vendor = vendor
        self._holder = request.holder
        self._is_closed = False
        self.checks: tuple[MetricFinding, ...] = ()
        self.desktop = SandboxDesktop(vendor, sandbox, lossless_only=knobs.screenshot_format == "png")
        self.desktop.reads = request.reads

    @classmethod
    def open(cls, request: EnvironmentRequest) -> Self:
        """Start a sandbox. Raises AtCapacity or EnvError."""
        knobs = request.knobs
        assert isinstance(knobs, GatewayConfig)
        pause = BackOff(redis.Redis.from_url(settings.REDIS_URL), knobs.model_dump_json())
        pause.require_no_pause()
        vendor = _opened(knobs, pause)
        owner = owner_of(knobs)
        wanted = SandboxRequest(
            image=knobs.image,
            width=request.screen[0],
            height=request.screen[1],
            owner=owner,
            key=f"{owner}/{request.key or secrets.token_hex(8)}",
        )
        try:
            sandbox = vendor.create(wanted)
        except EnvError as error:
            vendor.close()
            if not isinstance(error, AtCapacity):
                pause.failed(str(error))
            raise
        pause.worked()
        environment = cls(vendor, sandbox, request)
        if (sandbox.width, sandbox.height) != request.screen:
            environment.close()
            have, want = f"{sandbox.width}x{sandbox.height}", "x".join(map(str, request.screen))
            raise EnvError(f"the cluster made a screen of {have}, the task needs {want}", permanent=True)
        return environment

    @property
    def desktop_id(self) -> str:
        """The slot that rents: sandboxes come and go, and a page of each would never end."""
        return f"rented@{self._holder}"[:64]

    @property
    def is_lost(self) -> bool:
        return self._is_closed

    def prepare(self, task: Task) -> None:
        prepare_and_score.setup(task, self.desktop)

    def observe(self) -> Frame:
        return self.desktop.observe()

    def act(self, action: Action) -> None:
        self.desktop.act(action)

    def reached(self, milestones: Sequence[Milestone]) -> list[str]:
        return prepare_and_score.reached(milestones, self.desktop)

    def evaluate(self, task: Task, last_action: Action | None) -> float:
        score, self.checks = prepare_and_score.judge(task, self.desktop, last_action)
        return score

    def reset(self) -> None:
        """Nothing is kept: an idle sandbox costs money and quota."""
        self.close()

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self._vendor.delete(self.sandbox)
        except EnvError as error:
            log.warning("sandbox %s is left for later deletion: %s", self.sandbox.sandbox_id, error)
        finally:
            self._vendor.close()


def owner_of(knobs: GatewayConfig) -> str:
    """The label of our sandboxes: the config's, else one that no other installation has."""
    digest = hashlib.sha256(f"sandbox owner {settings.SECRET_KEY}".encode()).hexdigest()
    return knobs.owner or f"deskhand-{digest[:12]}"


def _opened(knobs: GatewayConfig, pause: BackOff) -> SandboxVendor:
    """The vendor; a failure counts towards the pause. Raises EnvError."""
    try:
        return open_vendor(knobs)
    except EnvError as error:
        pause.failed(str(error))
        raise
