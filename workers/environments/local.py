"""Desktops of the desk host on this machine, with our own setup verbs and evaluators."""

import contextlib
import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any, Self

from django.conf import settings

from training.contracts.config import PROVIDERS, Capability, MachineConfig
from training.contracts.metric_finding import MetricFinding
from training.contracts.milestone import Milestone
from training.contracts.types import Action, Task
from workers.desktops.contract import DesktopSpec, EnvError, ErrorKind
from workers.desktops.desktop_texts import NOTHING, Reads
from workers.desktops.frame import Frame
from workers.desktops.host.client import DeskHostClient, HostAway, LeaseKeeper
from workers.desktops.host.messages import KeptSnapshot, Lease
from workers.desktops.leased_desktop import DesktopEnv
from workers.environments.contract import AtCapacity, EnvironmentRequest
from workers.tasks import desktop_state, prepare_and_score
from workers.tasks.disk_full_check import require_room
from workers.tasks.setup_verbs import run_steps

LEASE_S = 15.0
QUOTA_WAIT_S = 60.0
"""How long to wait for a desktop when the host is full."""
QUOTA_PAUSE_S = 0.5


class LocalEnvironment:
    """One leased desktop."""

    def __init__(
        self,
        client: DeskHostClient,
        lease: Lease,
        *,
        keeps_setups: bool = False,
        can_be_saved: bool = False,
        reads: Reads = NOTHING,
    ) -> None:
        self._client = client
        self._keeper = LeaseKeeper(client, lease)
        self.desktop = DesktopEnv(client, lease)
        self.desktop.reads = reads
        self._keeps_setups = keeps_setups
        """A task's setup is run once and cloned, instead of run every time."""
        self._reset_is_due = False
        self.can_be_saved = can_be_saved
        self.checks: tuple[MetricFinding, ...] = ()

    @classmethod
    def open(cls, request: EnvironmentRequest, *, prepares: bool = True) -> Self:
        """Lease a clean desktop, waiting a while for one when the host is full. Raises AtCapacity.

        Without `prepares` the caller sets tasks up, so that a reset cannot wait for `prepare`.
        """
        client = DeskHostClient(settings.DESKHOST_SOCKET)
        return cls.lease(client, request, wait_s=QUOTA_WAIT_S, prepares=prepares)

    @classmethod
    def lease(
        cls,
        client: DeskHostClient,
        request: EnvironmentRequest,
        *,
        wait_s: float,
        ttl_s: float = LEASE_S,
        prepares: bool = True,
    ) -> Self:
        """The same from a given desk host; without a renewal for `ttl_s` the desktop is taken back."""
        knobs = request.knobs
        return cls(
            client,
            _acquire(client, request, wait_s, ttl_s),
            keeps_setups=prepares and isinstance(knobs, MachineConfig) and knobs.task_templates,
            can_be_saved=PROVIDERS[request.provider].can(Capability.SNAPSHOT),
            reads=request.reads,
        )

    def snapshot(self, label: str) -> KeptSnapshot:
        return self.desktop.snapshot(label)

    def wake(self, name: str) -> None:
        with _quota_as_at_capacity():
            self.desktop.wake(name)
        self._reset_is_due = False

    @property
    def desktop_id(self) -> str:
        return self.desktop.lease.desktop.desktop_id

    @property
    def provider(self) -> str:
        return self.desktop.lease.desktop.provider

    @property
    def is_lost(self) -> bool:
        return self._keeper.lost.is_set()

    @property
    def vnc_socket(self) -> str:
        return self.desktop.lease.desktop.endpoints.vnc

    def let_go(self) -> None:
        self.desktop.console.let_go()

    def prepare(self, task: Task) -> None:
        if self._keeps_setups and task.config:
            with _quota_as_at_capacity():
                self.desktop.prepare(setup_key(task), lambda: prepare_and_score.setup(task, self.desktop))
        else:
            if self._reset_is_due:
                self._reset()
            prepare_and_score.setup(task, self.desktop)
        self._reset_is_due = False

    def observe(self) -> Frame:
        return self.desktop.observe()

    def has_changed(self) -> bool:
        return self.desktop.has_changed()

    def wait_for_late(self) -> None:
        self.desktop.wait_for_late()

    def act(self, action: Action) -> None:
        self.desktop.act(action)

    def reached(self, milestones: Sequence[Milestone]) -> list[str]:
        return prepare_and_score.reached(milestones, self.desktop)

    def evaluate(self, task: Task, last_action: Action | None) -> float:
        score, self.checks = prepare_and_score.judge(task, self.desktop, last_action)
        if score < 1:
            require_room(self.desktop)
        return score

    def arrange(self, step: dict[str, Any]) -> None:
        run_steps([step], self.desktop)

    def look(self) -> dict[str, Any]:
        return desktop_state.look(self.desktop)

    def reset(self) -> None:
        self._reset_is_due = self._keeps_setups  # then `prepare` mostly brings another desktop anyway
        if not self._reset_is_due:
            self._reset()

    def _reset(self) -> None:
        with _quota_as_at_capacity():
            self.desktop.reset()

    def close(self) -> None:
        self._keeper.close()
        self.desktop.close()
        self._client.close()


@contextlib.contextmanager
def _quota_as_at_capacity() -> Iterator[None]:
    """A host without room for a clean desktop (its disk is full) is asked again later. Raises AtCapacity."""
    try:
        yield
    except EnvError as error:
        if error.kind is ErrorKind.QUOTA:
            raise AtCapacity(str(error)) from error
        raise


def setup_key(task: Task) -> str:
    """Name of a setup: tasks with equal steps, time zone and locale share one."""
    fields = task.model_dump(mode="json", include={"config", "timezone", "locale"})
    steps = json.dumps(fields, sort_keys=True)
    return hashlib.sha256(steps.encode()).hexdigest()


def desktop_spec(request: EnvironmentRequest) -> DesktopSpec:
    """What kind of desktop the request's provider is asked for."""
    width, height = request.screen
    fields = request.knobs.desktop_fields()
    if request.reads and PROVIDERS[request.provider].can(Capability.ACCESSIBILITY):
        fields = {**fields, "accessibility": True}
    return DesktopSpec(width=width, height=height, **fields)


def _acquire(client: DeskHostClient, request: EnvironmentRequest, wait_s: float, ttl_s: float) -> Lease:
    spec = desktop_spec(request)
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return client.acquire(request.provider, spec, holder=request.holder, ttl_s=ttl_s)
        except EnvError as error:
            # A desk host that is away comes back: failing at once would use up the place's retries.
            if error.kind is not ErrorKind.QUOTA and not isinstance(error, HostAway):
                raise
            if time.monotonic() >= deadline:
                raise AtCapacity(str(error)) from error
            time.sleep(QUOTA_PAUSE_S)
