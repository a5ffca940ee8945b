"""Real virtual machines with an attack in them, whole or with a defence left out."""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from testing.hostile_desktop.stage import ANSWER, WRONG, Attacked, Canaries
from workers.desktops.agent_client import AgentClient
from workers.desktops.contract import DesktopSpec
from workers.desktops.host_storage import HostStorage
from workers.desktops.qemu.desktop import QemuDesktop
from workers.desktops.qemu.machine_identity import MachineSpec
from workers.desktops.qemu.provider import QemuProvider
from workers.desktops.qemu.templates_and_clones import MachineFactory

SPEC = DesktopSpec(width=512, height=384, memory_mb=1024)
RESET = "reset"
"""The defence whose absence is no weaker machine, but one that stays instead of being replaced."""
SLOWNESS = 8.0
"""Emulated programs take that many times longer than a sandbox's."""


class WeakFactory(MachineFactory):
    """Makes machines without some of their defences."""

    weakened: frozenset[str] = frozenset()
    offered = ""

    async def machine_spec(self, spec: DesktopSpec) -> MachineSpec:
        whole = await super().machine_spec(spec)
        return dataclasses.replace(whole, weakened=self.weakened, offered=self.offered)


class MachineStage(Attacked):
    """A virtual machine under attack."""

    answer_limit_s = 60.0
    ready_limit_s = 900.0
    """Of programs that make thousands of files; the others report within seconds."""
    slow_command_s = 10.0

    def __init__(
        self, provider: QemuProvider, machine: QemuDesktop, canary: Canaries, *, is_replaced: bool
    ) -> None:
        self.machine = machine
        self.canary = canary
        self._provider = provider
        self._is_replaced = is_replaced
        self._loop = asyncio.get_running_loop()
        self._agent = self._open_agent()
        self.is_used = False

    def _open_agent(self) -> AgentClient:
        return AgentClient(self.machine.endpoints.agent, timeout_s=self.answer_limit_s)

    @property
    def provider(self) -> str:
        return "qemu"

    @property
    def weakened(self) -> frozenset[str]:
        return self.machine.machine.weakened

    @property
    def agent(self) -> AgentClient:
        return self._agent

    def prepare(self) -> None:
        """The wrong answer, and nothing of the attack before."""
        if self.is_used:
            self.agent.begin_evaluation()  # a command that programs cannot keep from starting
            self.run("chmod 755 ~; pkill -9 sleep; pkill -9 -f hostile[.]py; rm -rf ~/.local")
            self.run("cd ~ && rm -rf report answer.txt other fill* n[0-9]* *.py")
        self.is_used = True
        self.agent.put(ANSWER, WRONG.encode())

    def attack(self, program: str) -> None:
        super().attack(program.replace("@port", self.machine.endpoints.agent.rpartition(":")[2]))

    def wait(self, seconds: float) -> None:
        super().wait(seconds * SLOWNESS)

    def close(self) -> None:
        self._agent.close()

    def reset(self) -> bool:
        """As the desk host does it: this machine is ended, and a clone takes its place."""
        self.close()
        if self._is_replaced:
            asyncio.run_coroutine_threadsafe(self._replace(), self._loop).result()
        self._agent, self.is_used = self._open_agent(), False
        return True

    async def _replace(self) -> None:
        await self.machine.destroy()
        self.machine = await make(self._provider, self.canary)


async def make(provider: QemuProvider, canary: Canaries) -> QemuDesktop:
    """A clone in a folder of its own."""
    name = f"h{secrets.token_hex(3)}"
    return await provider.create(name, SPEC, canary.folder / name)


@dataclasses.dataclass
class Machines:
    """Makes stages; templates are kept, so each kind of machine boots once."""

    images: Path
    templates: Path
    canary: Canaries
    _providers: dict[frozenset[str], QemuProvider] = dataclasses.field(default_factory=dict)

    def provider(self, weakened: frozenset[str]) -> QemuProvider:
        """Of machines without these defences."""
        if weakened not in self._providers:
            offered = self.templates / "offered"
            offered.mkdir(parents=True, exist_ok=True)
            (offered / "secret.txt").write_text(self.canary.secret)
            made = self._providers[weakened] = QemuProvider(HostStorage(self.images, self.templates))
            made.factory_class = type("Weak", (WeakFactory,), {"weakened": weakened, "offered": str(offered)})
        return self._providers[weakened]

    @asynccontextmanager
    async def stage(self, without: str = "") -> AsyncIterator[MachineStage]:
        """A fresh machine with the wrong answer on it; `without`: one that lacks these defences."""
        provider = self.provider(frozenset(without.split("+")) - {"", RESET})
        machine = await make(provider, self.canary)
        there = MachineStage(provider, machine, self.canary, is_replaced=RESET not in without)
        try:
            yield there
        finally:
            there.close()
            await there.machine.destroy()
