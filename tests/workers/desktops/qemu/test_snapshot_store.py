"""What a host keeps of running machines is bounded, and what is damaged or gone is refused by name."""

import os
from pathlib import Path

import pytest

from workers.desktops.host_storage import SnapshotLimits
from workers.desktops.qemu.branch_snapshots import BranchSnapshots
from workers.desktops.qemu.snapshot_store import (
    DELTA,
    META,
    PARTS,
    SnapshotGone,
    SnapshotMeta,
    SnapshotStore,
    new_name,
)
from workers.desktops.qemu.template_store import PARTS as TEMPLATE_PARTS
from workers.desktops.qemu.template_store import TemplateMeta, TemplateStore
from workers.desktops.qemu.templates_and_clones import MachineFactory


def keep(store: SnapshotStore, label: str = "", size: int = 100, used_at: float = 0.0) -> str:
    folder = store.new_folder()
    for part in PARTS:
        (folder / part).write_bytes(b"x" * size)
    (folder / "stream").write_bytes(b"left over")
    meta = SnapshotMeta(
        name=new_name(),
        label=label,
        template="t",
        argv=["qemu"],
        qemu_version="7.2.1",
        screen_digest="",
        pause_s=0.2,
        took_s=0.5,
        created_at=0.0,
    )
    name = store.publish(folder, meta).name
    if used_at:
        os.utime(store.folder / name / META, (used_at, used_at))
    return name


def test_the_one_that_was_unused_for_longest_goes_when_there_are_too_many(tmp_path: Path):
    store = SnapshotStore(tmp_path, SnapshotLimits(count=2, mb=100))
    first = keep(store, "first", used_at=1000.0)
    second = keep(store, "second", used_at=2000.0)
    store.find(first)  # somebody branches from it
    third = keep(store, "third")
    assert {meta.name for meta in store.list()} == {first, third}
    with pytest.raises(SnapshotGone, match="dropped from this host"):
        store.find(second)


def test_size_bounds_them_too_but_the_newest_always_stays(tmp_path: Path):
    store = SnapshotStore(tmp_path, SnapshotLimits(count=10, mb=1))
    keep(store, size=300_000, used_at=1000.0)
    newest = keep(store, size=300_000)
    assert [meta.name for meta in store.list()] == [newest]
    assert store.size_mb() > 1


def test_nothing_but_the_parts_of_a_snapshot_is_kept(tmp_path: Path):
    store = SnapshotStore(tmp_path)
    name = keep(store)
    assert sorted(path.name for path in (tmp_path / name).iterdir()) == sorted([*PARTS, META])


def test_a_damaged_one_is_refused_and_says_what_is_wrong(tmp_path: Path):
    store = SnapshotStore(tmp_path)
    name = keep(store)
    (tmp_path / name / DELTA).write_bytes(b"short")
    with pytest.raises(SnapshotGone, match=r"ram\.delta is not as it was saved"):
        store.find(name)


@pytest.mark.parametrize("name", ["", "../../etc", "s123", "s" + "0" * 16])
def test_names_that_are_none_are_refused(tmp_path: Path, name: str):
    store = SnapshotStore(tmp_path)
    with pytest.raises(SnapshotGone):
        store.find(name)
    assert not store.drop(name)


def test_what_a_dead_taker_left_is_removed_at_the_start(tmp_path: Path):
    store = SnapshotStore(tmp_path)
    name = keep(store)
    mine = store.new_folder()
    (tmp_path / ".making-1-999999999-abcd").mkdir()
    (tmp_path / "s0123456789abcdef").mkdir()  # dropped half-way
    SnapshotStore(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([mine.name, name])


def template_of_snapshot(store: TemplateStore, key: str, snapshot: Path, parent: str = "") -> None:
    folder = store.new_folder(1)
    for part in TEMPLATE_PARTS:
        (folder / part).write_bytes(b"x")
    store.publish(
        folder,
        TemplateMeta(
            key=key,
            parent=parent,
            snapshot=str(snapshot),
            argv=[],
            qemu_version="7.2.1",
            image="i",
            image_sha256="",
            memory_mb=1,
            accelerator="tcg",
            sizes={},
            screen_digest="",
            boot_s=1.0,
            created_at=0.0,
        ),
    )


def test_templates_of_dropped_snapshots_go_children_first_and_never_under_a_clone(tmp_path: Path):
    factory = MachineFactory(tmp_path / "images", tmp_path / "templates", limit_mb=1000)
    snapshots = SnapshotStore(tmp_path / "snapshots")
    branches = BranchSnapshots(factory, snapshots)
    first, second = keep(snapshots), keep(snapshots)
    template_of_snapshot(factory.store, "a", snapshots.folder / first)
    template_of_snapshot(factory.store, "b", snapshots.folder / second, parent="a")
    branches.sweep()
    assert {meta.key for meta in factory.store.of_snapshots()} == {"a", "b"}
    factory.store.retain("b")
    assert branches.drop(first)
    assert branches.drop(second)
    assert {meta.key for meta in factory.store.of_snapshots()} == {"a", "b"}  # a clone lives on it
    factory.store.release("b")
    assert not branches.drop(first)
    assert factory.store.of_snapshots() == []
