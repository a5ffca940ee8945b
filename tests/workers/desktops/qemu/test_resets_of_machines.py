"""A used machine is reset before anyone else gets it, whoever sets tasks up on it."""

from __future__ import annotations

from typing import Any

import pytest

from training.content.task_sets import first_desk
from training.contracts.config import DesktopConfig
from workers.desktops.contract import DesktopSpec, Endpoints, ResetReport
from workers.desktops.host.messages import DesktopInfo, Lease, Prepared, ResetResult
from workers.environments import local
from workers.environments.contract import EnvironmentRequest
from workers.environments.local import LocalEnvironment
from workers.environments.osworld.environment import OsworldEnvironment

DESKTOP = DesktopInfo(
    desktop_id="d", provider="qemu", spec=DesktopSpec(), generation=1, endpoints=Endpoints()
)
TASK = next(task for task in first_desk.generate() if task.config)


class Host:
    """A desk host that notes what it is asked for."""

    def __init__(self, _socket: object = None) -> None:
        self.calls: list[str] = []

    def acquire(self, *_: Any, **__: Any) -> Lease:
        return Lease(lease_id="l", holder="a test", ttl_s=900, desktop=DESKTOP)

    def reset(self, desktop_id: str, lease_id: str) -> ResetResult:
        self.calls.append("reset")
        return ResetResult(desktop=DESKTOP, report=ResetReport())

    def prepare(self, desktop_id: str, lease_id: str, key: str) -> Prepared:
        self.calls.append("prepare")
        return Prepared(desktop=DESKTOP, is_ready=True)

    def release(self, lease_id: str) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host()
    monkeypatch.setattr(local, "DeskHostClient", lambda _socket: host)
    return host


def request_of(values: dict[str, Any]) -> EnvironmentRequest:
    return EnvironmentRequest.of(DesktopConfig.model_validate(values), (512, 384), holder="a test", key="")


def test_our_own_tasks_get_a_clone_of_their_template_instead_of_a_reset(host):
    environment = LocalEnvironment.open(request_of({"provider": "qemu"}))
    environment.reset()
    environment.prepare(TASK)
    assert host.calls == ["prepare"]
    environment.close()


def test_a_task_without_a_setup_gets_the_reset_that_was_put_off(host):
    environment = LocalEnvironment.open(request_of({"provider": "qemu"}))
    environment.reset()
    environment.prepare(TASK.model_copy(update={"config": ()}))
    assert host.calls == ["reset"]
    environment.close()


def test_a_machine_that_osworld_sets_up_is_reset_at_once(host):
    osworld = object.__new__(OsworldEnvironment)
    request = request_of({"provider": "osworld", "osworld": {"machines": "qemu"}})
    osworld._knobs = request.knobs
    environment = osworld._lease(request)
    environment.reset()
    assert host.calls == ["reset"]
    environment.close()
