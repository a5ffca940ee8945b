"""A host without room for a clean desktop is asked again later: that is no failure of a trajectory."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.content.task_sets import first_desk
from workers.desktops.contract import DesktopSpec, Endpoints, EnvError, ErrorKind
from workers.desktops.host.messages import DesktopInfo, Lease, Prepared, ResetResult
from workers.desktops.qemu.template_store import TemplateStore
from workers.desktops.qemu.vm_process import VmProcess
from workers.environments.local import LocalEnvironment
from workers.environments.registry import AtCapacity
from workers.processes.cgroups import usable_controllers

LEASE = Lease(
    lease_id="l",
    holder="a test",
    ttl_s=900,
    desktop=DesktopInfo(
        desktop_id="d", provider="qemu", spec=DesktopSpec(), generation=1, endpoints=Endpoints()
    ),
)


class FailingHost:
    """A desk host that cannot make a clean desktop."""

    def __init__(self, kind: ErrorKind) -> None:
        self.kind = kind

    def reset(self, desktop_id: str, lease_id: str) -> ResetResult:
        raise EnvError("the disk has 1 MiB left", kind=self.kind)

    def prepare(self, desktop_id: str, lease_id: str, key: str) -> Prepared:
        raise EnvError("the disk has 1 MiB left", kind=self.kind)

    def release(self, lease_id: str) -> None: ...

    def close(self) -> None: ...


def environment_on(kind: ErrorKind) -> LocalEnvironment:
    return LocalEnvironment(FailingHost(kind), LEASE)  # type: ignore[arg-type]


def test_a_reset_without_room_waits_for_room() -> None:
    environment = environment_on(ErrorKind.QUOTA)
    with pytest.raises(AtCapacity, match="1 MiB left"):
        environment.reset()
    environment.close()


def test_a_tasks_template_without_room_waits_for_room() -> None:
    environment = environment_on(ErrorKind.QUOTA)
    environment._keeps_setups = True
    task = next(task for task in first_desk.generate() if task.config)
    with pytest.raises(AtCapacity, match="1 MiB left"):
        environment.prepare(task)
    environment.close()


def test_a_broken_host_is_a_failure() -> None:
    environment = environment_on(ErrorKind.INFRA)
    with pytest.raises(EnvError) as caught:
        environment.reset()
    assert not isinstance(caught.value, AtCapacity)
    environment.close()


def test_a_clone_asks_for_room_where_its_overlay_will_be(tmp_path: Path, monkeypatch) -> None:
    from workers.desktops.qemu import template_store

    asked: list[Path] = []

    def usage(folder: Path):
        asked.append(folder)
        return type("Usage", (), {"free": 1 << 20})

    store = TemplateStore(tmp_path / "templates")
    monkeypatch.setattr(template_store.shutil, "disk_usage", usage)
    with pytest.raises(EnvError, match=f"{tmp_path}/overlays has 1 MiB left") as caught:
        store.guard_disk(256, tmp_path / "overlays")
    assert caught.value.kind is ErrorKind.QUOTA
    assert asked == [tmp_path / "overlays"]


async def test_a_machine_that_cannot_be_started_leaves_no_control_group(tmp_path: Path) -> None:
    """As on a full disk: its folder takes no log file."""
    before = {path for base in usable_controllers().values() for path in base.glob("deskhand-*")}
    with pytest.raises(OSError, match="qemu.log"):
        await VmProcess.start(tmp_path / "not-there", ["true"], "unstarted", 64)
    after = {path for base in usable_controllers().values() for path in base.glob("deskhand-*")}
    assert not [path for path in after - before if path.name.endswith("unstarted")]
