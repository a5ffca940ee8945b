"""A template that does not fit is refused, and the collector takes only what nobody needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.qemu.template_store import (
    PARTS,
    TemplateMeta,
    TemplateRefused,
    TemplateStore,
    template_key,
)
from workers.processes.process_group import start_ticks

ARGV = ["qemu-system-x86_64", "-machine", "pc-i440fx-7.2"]
VERSION = "7.2.22"


def publish(store: TemplateStore, key: str, *, parent: str = "", size: int = 4096) -> None:
    folder = store.new_folder(1)
    for part in PARTS:
        (folder / part).write_bytes(b"x" * size)
    (folder / "console.log").write_text("not part of a template")
    meta = TemplateMeta(
        key=key,
        parent=parent,
        argv=ARGV,
        qemu_version=VERSION,
        image="desk",
        image_sha256="0" * 64,
        memory_mb=1,
        accelerator="tcg",
        sizes={},
        screen_digest="d",
        boot_s=1.0,
        created_at=time.time(),
    )
    store.publish(folder, meta)


def used_at(store: TemplateStore, key: str, seconds_ago: float) -> None:
    when = time.time() - seconds_ago
    os.utime(store.folder / key / "meta.json", (when, when))


@pytest.fixture
def store(tmp_path: Path) -> TemplateStore:
    return TemplateStore(tmp_path / "templates")


def test_a_published_template_is_found_and_holds_only_its_parts(store):
    publish(store, "a")
    template = store.find("a", ARGV, VERSION)
    assert template is not None
    assert sorted(path.name for path in template.folder.iterdir()) == sorted([*PARTS, "meta.json"])
    assert store.find("b", ARGV, VERSION) is None


def test_a_missing_memory_file_is_refused_because_qemu_would_make_an_empty_one(store):
    publish(store, "a")
    (store.folder / "a" / "ram").unlink()
    with pytest.raises(TemplateRefused, match="ram is missing"):
        store.find("a", ARGV, VERSION)


def test_a_memory_file_that_a_plain_user_cannot_open_is_refused(store):
    publish(store, "a")
    assert store.find("a", ARGV, VERSION) is not None
    os.chmod(store.folder / "a" / "ram", 0o400)
    with pytest.raises(TemplateRefused, match="ram cannot be opened for writing"):
        store.find("a", ARGV, VERSION)


def test_a_cut_off_file_is_refused(store):
    publish(store, "a")
    os.chmod(store.folder / "a" / "state", 0o600)
    os.truncate(store.folder / "a" / "state", 10)
    with pytest.raises(TemplateRefused, match="state has 10 bytes instead of 4096"):
        store.find("a", ARGV, VERSION)


def test_another_qemu_or_another_command_line_is_refused(store):
    publish(store, "a")
    with pytest.raises(TemplateRefused, match=r"made by QEMU 7.2.22, this one is 9.0.0"):
        store.find("a", ARGV, "9.0.0")
    with pytest.raises(TemplateRefused, match="made for another command line"):
        store.find("a", [*ARGV, "-smp", "2"], VERSION)


def test_a_template_without_its_parent_is_refused(store):
    publish(store, "base")
    publish(store, "task", parent="base")
    store.remove("base")
    with pytest.raises(TemplateRefused, match="its parent base is gone"):
        store.find("task", ARGV, VERSION)


def test_a_description_that_a_crash_cut_off_is_refused(store):
    publish(store, "a")
    (store.folder / "a" / "meta.json").write_text('{"key": "a"')
    with pytest.raises(TemplateRefused, match=r"meta.json cannot be read"):
        store.find("a", ARGV, VERSION)


def test_the_least_recently_used_go_first_but_never_those_in_use_or_with_children(store):
    for key in ("base", "old", "used", "new"):
        publish(store, key, size=1 << 18)
    publish(store, "task", parent="base", size=1 << 18)
    for age, key in enumerate(("new", "task", "used", "old", "base")):
        used_at(store, key, 100 + age)
    store.retain("used")
    store.limit_mb = 4
    assert store.evict() == ["old", "task"]
    assert store.size_mb() <= 4
    store.release("used")
    used_at(store, "used", 500)
    store.limit_mb = 2
    assert store.evict() == ["used", "base"]
    assert [path.name for path in store.folder.iterdir()] == ["new"]


def test_a_full_disk_is_a_reason_to_wait_not_to_fill_it(store, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=3 << 30))
    with pytest.raises(EnvError, match="has 3072 MiB left, 3172 are needed") as caught:
        store.new_folder(1124)
    assert caught.value.kind is ErrorKind.QUOTA
    assert list(store.folder.iterdir()) == []


def test_a_folder_whose_maker_is_gone_is_removed_and_a_living_makers_stays(tmp_path):
    store = TemplateStore(tmp_path / "t")
    mine = store.new_folder(1)
    other = subprocess.Popen(["sleep", "0"])
    abandoned = store.folder / f".making-{other.pid}-{start_ticks(os.getpid())}-ff"
    other.wait()
    abandoned.mkdir()
    TemplateStore(tmp_path / "t")
    assert mine.exists()
    assert not abandoned.exists()


def test_equal_machines_have_equal_names_and_any_difference_another():
    one = template_key({"argv": ["a"], "sha256": "1"})
    assert one == template_key({"sha256": "1", "argv": ["a"]})
    assert one != template_key({"argv": ["a"], "sha256": "2"})
