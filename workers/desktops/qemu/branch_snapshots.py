"""Takes snapshots of running clones, and makes templates of snapshots when a branch starts from them.

    clone --stop, save, go on--> snapshot --its pages over the template's--> template --clone--> desktop
A machine stands still only while QEMU writes its state; what differs from the template is found afterwards.
The template of a snapshot is made once, however many desktops wake up from it, and goes with the snapshot.
"""

import asyncio
import hashlib
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from workers.desktops.qemu import migration_stream
from workers.desktops.qemu.boot_phases import Machine
from workers.desktops.qemu.command_line import argv, qemu_version
from workers.desktops.qemu.machine_identity import DISK, RAM, MachineSpec
from workers.desktops.qemu.snapshot_store import DELTA, SnapshotGone, SnapshotMeta, SnapshotStore, new_name
from workers.desktops.qemu.template_store import SCREEN, STATE, Template, TemplateMeta, template_key
from workers.desktops.qemu.templates_and_clones import MachineFactory, tool

STREAM = "stream"


@dataclass
class BranchSnapshots:
    """The snapshots of one factory's machines."""

    factory: MachineFactory
    snapshots: SnapshotStore

    def __post_init__(self) -> None:
        self._making: dict[str, asyncio.Lock] = {}
        self.factory.store.pinned = self.snapshots.templates

    # -- taking -----------------------------------------------------------------------------

    async def take(
        self, running: Machine, machine: MachineSpec, template: Template, label: str
    ) -> SnapshotMeta:
        """Save a clone as it is now; it goes on. Raises EnvError (quota when the disk is too full)."""
        started = time.monotonic()
        await asyncio.to_thread(self.factory.store.guard_disk, machine.memory_mb)
        folder = await asyncio.to_thread(self.snapshots.new_folder)
        try:
            pause_s = await _freeze(running, folder)
            files = [folder / STREAM, template.folder / RAM, folder / STATE, folder / DELTA]
            await tool(sys.executable, migration_stream.__file__, *map(str, files))
            picture = await asyncio.to_thread((folder / SCREEN).read_bytes)
            meta = SnapshotMeta(
                name=new_name(),
                label=label,
                template=template.key,
                argv=argv(machine, shared=True),
                qemu_version=qemu_version(),
                screen_digest=hashlib.sha1(picture, usedforsecurity=False).hexdigest(),
                pause_s=round(pause_s, 3),
                took_s=round(time.monotonic() - started, 3),
                created_at=time.time(),
            )
            kept = await asyncio.to_thread(self.snapshots.publish, folder, meta)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        await asyncio.to_thread(self.sweep)
        return kept

    # -- waking -----------------------------------------------------------------------------

    def check(self, name: str, machine: MachineSpec) -> SnapshotMeta:
        """The snapshot, if a machine of this kind can wake up from it. Raises SnapshotGone."""
        meta = self.snapshots.find(name)
        if meta.qemu_version != qemu_version():
            message = f"snapshot {name} was taken by QEMU {meta.qemu_version}, this one is {qemu_version()}"
            raise SnapshotGone(message)
        if meta.argv != argv(machine, shared=True):
            raise SnapshotGone(f"snapshot {name} is of another kind of machine; image or size have changed")
        return meta

    async def template(self, name: str, machine: MachineSpec) -> Template:
        """The template that wakes up in this snapshot, made when it is not there. Raises SnapshotGone."""
        meta = await asyncio.to_thread(self.check, name, machine)
        key = template_of(meta)
        async with self._making.setdefault(key, asyncio.Lock()):
            return self.factory.find(key, machine) or await self._make(key, meta, machine)

    async def _make(self, key: str, snapshot: SnapshotMeta, machine: MachineSpec) -> Template:
        base = self.factory.find(snapshot.template, machine)
        if base is None:
            raise SnapshotGone(f"the template on which snapshot {snapshot.name} stands is gone")
        source = self.snapshots.folder / snapshot.name
        store = self.factory.store
        folder = await asyncio.to_thread(store.new_folder, machine.memory_mb)
        store.retain(base.key)
        try:
            await tool("cp", "--sparse=always", "--reflink=auto", str(base.folder / RAM), str(folder / RAM))
            (folder / RAM).chmod(0o600)
            await asyncio.to_thread(migration_stream.apply, source / DELTA, folder / RAM)
            for part in (STATE, DISK, SCREEN):
                await tool("cp", "--sparse=always", "--reflink=auto", str(source / part), str(folder / part))
            meta = base.meta.model_copy(
                update={
                    "key": key,
                    "parent": base.key,
                    "snapshot": str(source),
                    "screen_digest": snapshot.screen_digest,
                    "created_at": time.time(),
                }
            )
            return await asyncio.to_thread(store.publish, folder, TemplateMeta.model_validate(meta))
        except (migration_stream.StreamError, OSError) as exc:
            raise SnapshotGone(f"snapshot {snapshot.name} is damaged: {exc}") from exc
        finally:
            store.release(base.key)
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    # -- dropping ---------------------------------------------------------------------------

    def drop(self, name: str) -> bool:
        """Remove a snapshot and what was made of it; False when there was none."""
        was_there = self.snapshots.drop(name)
        self.sweep()
        return was_there

    def sweep(self) -> None:
        """Remove the templates of snapshots that are gone, once nothing lives on them."""
        store = self.factory.store
        stale = [meta for meta in store.of_snapshots() if not Path(meta.snapshot).is_dir()]
        while removed := [meta for meta in stale if store.remove_unless_needed(meta.key)]:
            stale = [meta for meta in stale if meta not in removed]  # parents go after their children


def template_of(snapshot: SnapshotMeta) -> str:
    """Key of the template that wakes up in this snapshot."""
    return template_key({"base": snapshot.template, "snapshot": snapshot.name})


async def _freeze(running: Machine, folder: Path) -> float:
    """Save everything while the machine stands still; how long that was, seconds."""
    vm = running.vm
    started = time.monotonic()
    await vm.execute("stop")
    try:
        await vm.screenshot(folder / SCREEN)
        await vm.save(folder / STREAM)
        # QEMU has written out what it held of the disk when it saved: the file is the disk of this moment.
        await tool("cp", "--sparse=always", "--reflink=auto", str(vm.folder / DISK), str(folder / DISK))
    finally:
        await vm.execute("cont")
    return time.monotonic() - started
