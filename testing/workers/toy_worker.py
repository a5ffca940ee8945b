"""An env worker with toys for desktops and policy; what it claims, reports and mirrors is the product's.

    celery -A testing.workers.toy_worker worker -Q env -n env@toy01 --pool=threads --concurrency=25
TOY_TURN_S is how long a completion takes. The worker's host is what its node name says.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections import Counter
from dataclasses import replace
from typing import Any

from PIL import Image

from training.contracts.types import Action, ActionKind, Completion, Observation, Task, Turn
from webapp.worker_door.assignments import Assignment
from workers import app as celery_module
from workers import identity
from workers.desktops.contract import DesktopSpec, Endpoints
from workers.desktops.frame import Frame
from workers.desktops.host.messages import (
    DesktopInfo,
    DesktopStatus,
    HostHealth,
    HostReport,
    KeptSnapshot,
    Machine,
    Phase,
    ResetTimes,
)
from workers.env import trajectory_job
from workers.env.actors import Decision
from workers.environments.contract import EnvironmentRequest
from workers.environments.registry import ENVIRONMENTS
from workers.fleet import desk_host_mirror

app = celery_module.app
TURN_S = float(os.environ.get("TOY_TURN_S", "0"))
NUM_TOKENS = 40
SCREEN = (512, 384)
LEASE_S, RENEW_S = 30.0, 10.0
"""Of the desk host's leases."""
_screens = [Frame.of(Image.new("RGB", SCREEN, (shade, 90, 255 - shade))) for shade in range(0, 256, 16)]


class ToyEnvironment:
    """A desktop whose screen changes with each action, at once."""

    provider = "x11"
    is_lost = False

    def __init__(self, request: EnvironmentRequest) -> None:
        self._desktop = HOST.take()
        self.desktop_id = f"{identity.current().host}-d{self._desktop}"
        self._number = 0

    def prepare(self, task: Task) -> None:
        HOST.use(self._desktop)
        self._number = 0

    def observe(self) -> Frame:
        found = _screens[self._number % len(_screens)]
        return replace(found, taken_at=time.time(), taken_monotonic_s=time.monotonic())

    def act(self, action: Action) -> None:
        self._number += 1

    def evaluate(self, task: Task, last_action: Action | None) -> float:
        return float(self._number % 2)

    def reset(self) -> None:
        HOST.reset(self._desktop)

    def close(self) -> None:
        pass


class ToyPolicy:
    """Clicks, after as long as a completion takes."""

    def __init__(self, assignment: Assignment) -> None:
        pass

    def decide(self, index: int, png: bytes, observation: Observation, turns: list[Turn]) -> Decision:
        time.sleep(TURN_S)
        completion = Completion(
            text='{"action": "click", "x": 100, "y": 90}',
            token_ids=tuple(range(NUM_TOKENS)),
            behaviour_logprobs=(-0.25,) * NUM_TOKENS,
        )
        action = Action(kind=ActionKind.CLICK, x=100, y=90)
        return Decision(actions=(action,), completion=completion, dialect="json", thought="I click it.")

    def resume(self, turns: Any) -> None:
        pass

    def close(self) -> None:
        pass


class ToyHost:
    """What the mirror asks of a desk host. All desktops are leased; one changes when its trajectory ends."""

    def __init__(self) -> None:
        self._version = 0
        self._changed = threading.Condition()
        self._taken = itertools.count()
        self._resets: Counter[int] = Counter()
        self._used: set[int] = set()

    def take(self) -> int:
        """The next desktop, for a slot that keeps it."""
        return next(self._taken) % identity.current().slots

    def use(self, number: int) -> None:
        """A trajectory begins on it."""
        self._used.add(number)

    def reset(self, number: int) -> None:
        """Its trajectory has ended."""
        with self._changed:
            self._used.discard(number)
            self._resets[number] += 1
            self._version += 1
            self._changed.notify_all()

    def watch(self, *, after: int, wait_s: float) -> HostReport:
        with self._changed:
            self._changed.wait_for(lambda: self._version > after, wait_s)
        me = identity.current()
        health = HostHealth(
            pid=1,
            uptime_s=time.monotonic(),
            desktops={Phase.LEASED: me.slots},
            max_desktops=me.slots,
            swept=0,
            providers=[],
        )
        return HostReport(
            version=self._version,
            health=health,
            machine=Machine(cores=16, cpu_percent=50, memory_mb=65536, memory_used_mb=30000, disk_mb=1e6,
                            disk_free_mb=5e5),
            desktops=[self._desktop(number) for number in range(me.slots)],
            resets=ResetTimes(count=10, p50_s=0.05, p99_s=0.2),
            num_resets=self._resets.total(),
            num_failures=0,
            failures=[],
            leaks=[],
            pool=[],
        )  # fmt: skip

    def _desktop(self, number: int) -> DesktopStatus:
        """One that a trajectory uses takes CPU, each time another share of it."""
        me = identity.current()
        spec = DesktopSpec(width=SCREEN[0], height=SCREEN[1])
        info = DesktopInfo(
            desktop_id=f"{me.host}-d{number}", provider="x11", spec=spec, generation=1, endpoints=Endpoints()
        )
        now, is_used = time.monotonic(), number in self._used
        figures = {"resets": self._resets[number], "cpu_percent": now % 60 if is_used else 0.0, "age_s": now}
        lease = {"lease_id": f"l{number}", "holder": f"{me.name}/slot{number}"}
        left_s = LEASE_S - (now + number) % RENEW_S
        return DesktopStatus(info=info, phase=Phase.LEASED, pid=1, lease_left_s=left_s, **figures, **lease)

    def drain(self, wanted: bool) -> None:
        pass

    def expect(self, provider: str, width: int, height: int, count: int) -> None:
        pass

    def snapshots(self) -> dict[str, KeptSnapshot]:
        return {}

    def drop_snapshots(self, names: set[str]) -> None:
        pass

    def close(self) -> None:
        pass


HOST = ToyHost()


def _start_mirror(stopping: threading.Event) -> None:
    me = identity.current()
    mirror = desk_host_mirror.Mirror(HOST, me.host, me.name)  # type: ignore[arg-type]
    threading.Thread(target=mirror.run, args=[stopping], name="mirror", daemon=True).start()


def _announce(mine: identity.Identity, announce: Any = identity.announce) -> None:
    """Forty hosts on one machine: the host is the node name's."""
    announce(replace(mine, host=mine.name.rpartition("@")[2]))


identity.announce = _announce
desk_host_mirror.start = _start_mirror
ENVIRONMENTS["x11"] = ToyEnvironment
trajectory_job._actor = ToyPolicy
