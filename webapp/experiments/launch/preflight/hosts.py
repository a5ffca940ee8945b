"""Pre-flight: secrets, images and programs that the config names and the workers' machines must have.

This web server sees its own machine only. What is missing here stops the launch when the workers that need it
run here (or none is online yet); when they run elsewhere it is a warning.
"""

import shutil
import socket
from collections.abc import Iterator
from typing import Literal

import psutil
from django.conf import settings

from training.contracts.config import ExperimentConfig, GatewayConfig, MachineConfig, RemoteConfig
from training.contracts.secrets import SecretError, read_secret
from webapp.experiments.launch.preflight.check import Check
from webapp.fleet.models import Host, Worker, WorkerStatus

CLONE_MB = 75
"""Private memory of a clone that does little; measured by benchmarks/desktops/vm_clone.py."""
MACHINES = {"qemu": "make guest-image", "windows": "docs/windows.md"}
"""Provider of virtual machines -> where its image comes from."""


def host_checks(config: ExperimentConfig) -> Iterator[Check]:
    """Nothing for what is there."""
    yield from _secret(config)
    provider = config.desktops.provider
    if machines := config.desktops.machines:
        yield from _machine_image(machines, provider)
        yield from _machine_memory(machines, provider, config.desktops.num_desktops)
    if config.engine.name == "sglang":
        yield from _sglang()


def missing_here(queue: str) -> Literal["bad", "warning"]:
    """How bad it is that something is not on this machine, for workers of `queue`."""
    online = Worker.objects.filter(queue=queue, status=WorkerStatus.ONLINE)
    hosts = set(online.values_list("host", flat=True))
    return "bad" if not hosts or socket.gethostname() in hosts else "warning"


def _secret(config: ExperimentConfig) -> Iterator[Check]:
    provider = config.desktops.provider
    section = config.desktops.provider_section
    if not isinstance(section, RemoteConfig | GatewayConfig) or not section.token_secret:
        return
    name = section.token_secret
    try:
        read_secret(name, settings.SECRETS_DIR)
    except SecretError as error:
        path = f"desktops.{provider}.token_secret"
        yield Check(missing_here("env"), f"Secret {name!r} cannot be read", f"{error}.", path)


def _machine_image(machines: MachineConfig, provider: str) -> Iterator[Check]:
    wanted = machines.image
    folder = settings.IMAGES_DIR
    if (folder / wanted / "image.json").is_file():
        return
    known = ", ".join(sorted(path.parent.name for path in folder.glob("*/image.json"))) or "none"
    text = f"Not in {folder} (there: {known}). It comes from: {MACHINES[provider]}."
    yield Check(missing_here("env"), f"No image {wanted!r}", text, f"desktops.{provider}.image")


def _machine_memory(machine: MachineConfig, provider: str, wanted: int) -> Iterator[Check]:
    """The template's memory is there once for all clones, and once more per task template at work."""
    hosts = [host.memory_mb for host in Host.objects.exclude(memory_mb=0)]
    total = max(hosts, default=psutil.virtual_memory().total / 2**20)
    if machine.memory_mb > total:
        text = f"The largest host has {total:.0f} MiB. Lower it; the guest image says what it needs."
        title = f"A machine of {machine.memory_mb} MiB does not fit"
        yield Check("bad", title, text, f"desktops.{provider}.memory_mb")
        return
    need = machine.memory_mb * (2 if machine.task_templates else 1) + wanted * CLONE_MB
    everywhere = sum(hosts) or total
    if need > everywhere:
        text = (
            f"{wanted} clones of at least {CLONE_MB} MiB and their templates need {need} MiB, the hosts have "
            f"{everywhere:.0f}. Lower desktops.num_desktops."
        )
        yield Check("warning", "Memory of the desktops' hosts", text, "desktops.num_desktops")


def _sglang() -> Iterator[Check]:
    python = settings.SGLANG_PYTHON
    if shutil.which(python) is None:
        text = (
            f"No interpreter {python}. Run `make sglang-env` on the GPU host, or set DESKHAND_SGLANG_PYTHON."
        )
        yield Check(missing_here("gpu"), "SGLang is not installed", text, "engine.name")
