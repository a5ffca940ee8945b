"""Pre-flight: secrets, images and programs that the config names and the workers' machines must have.

The hosts say themselves which desktops they cannot start. Of secrets, images and programs this web server
sees its own machine only: what is missing here stops the launch when the workers that need it run here (or
none is online yet); when they run elsewhere it is a warning.
"""

import shutil
import socket
from collections.abc import Iterator
from typing import Literal

import psutil
from django.conf import settings

from training.contracts.config import DesktopConfig, ExperimentConfig, MachineConfig, ProviderInfo
from training.outgoing.secret_store import SecretError, read_secret
from webapp.fleet.models import Host, Worker, WorkerStatus
from webapp.fleet.queries.env_capacity import host_names_at_work
from webapp.launch.preflight.check import Check

CLONE_MB = 75
"""Private memory of a clone that does little; measured by benchmarks/desktops/vm_clone.py."""


def host_checks(config: ExperimentConfig) -> Iterator[Check]:
    """Nothing for what is there."""
    yield from _desktops_start(config.desktops)
    yield from _secret(config)
    if machines := config.desktops.machines:
        yield from _machine_image(config.desktops.provider_info, machines)
        yield from _machine_memory(config.desktops, machines)
    if config.engine.name == "sglang":
        yield from _sglang()


def missing_here(queue: str) -> Literal["bad", "warning"]:
    """How bad it is that something is not on this machine, for workers of `queue`."""
    hosts = _hosts_of(queue)
    return "bad" if not hosts or socket.gethostname() in hosts else "warning"


def asked_hosts(queue: str) -> str:
    """A sentence: which machine was looked at, and which others run workers of `queue`."""
    here = socket.gethostname()
    others = sorted(_hosts_of(queue) - {here})
    if not others:
        return f"Looked on {here}."
    return f"Looked on {here} only; {queue} workers also run on {', '.join(others)}, which were not asked."


def _hosts_of(queue: str) -> set[str]:
    online = Worker.objects.filter(queue=queue, status=WorkerStatus.ONLINE)
    return set(online.values_list("host", flat=True))


def _secret(config: ExperimentConfig) -> Iterator[Check]:
    for knob, name in config.desktops.provider_section.secrets().items():
        if not name:
            continue
        try:
            read_secret(name, settings.SECRETS_DIR)
        except SecretError as error:
            path = f"desktops.{config.desktops.provider}.{knob}"
            yield Check(missing_here("env"), f"Secret {name!r} cannot be read", f"{error}.", path)


def _desktops_start(desktops: DesktopConfig) -> Iterator[Check]:
    """What the env workers' hosts say of this kind of desktop: else an engine starts first, for nothing."""
    hosts = Host.objects.filter(name__in=host_names_at_work()).order_by("name")
    reports = ((host.name, each) for host in hosts for each in host.providers)
    said = [(name, each) for name, each in reports if each["provider"] == desktops.provider]
    broken = [(name, each) for name, each in said if not each["usable"]]
    if not broken:
        return
    reasons = "; ".join(f"{name}: {', '.join(each['reasons'])}" for name, each in broken)
    remedies = dict.fromkeys(remedy for _, each in broken for remedy in each["remedies"])
    yield Check(
        "bad" if len(broken) == len(said) else "warning",
        f"No {desktops.provider} desktop starts on {len(broken)} of {len(said)} hosts",
        f"{reasons}. To do there: {'; '.join(remedies)}.",
        "desktops.provider",
    )


def _machine_image(provider: ProviderInfo, machine: MachineConfig) -> Iterator[Check]:
    wanted = machine.image
    folder = settings.IMAGES_DIR
    if (folder / wanted / "image.json").is_file():
        return
    known = ", ".join(sorted(path.parent.name for path in folder.glob("*/image.json"))) or "none"
    text = f"Not in {folder} (there: {known}). It comes from: {provider.image_source}."
    yield Check(missing_here("env"), f"No image {wanted!r}", text, f"desktops.{provider.name}.image")


def _machine_memory(desktops: DesktopConfig, machine: MachineConfig) -> Iterator[Check]:
    """The template's memory is there once for all clones, and once more per task template at work."""
    wanted = desktops.num_desktops
    hosts = [host.memory_mb for host in Host.objects.exclude(memory_mb=0)]
    total = max(hosts, default=psutil.virtual_memory().total / 2**20)
    if machine.memory_mb > total:
        text = f"The largest host has {total:.0f} MiB. Lower it; the guest image says what it needs."
        title = f"A machine of {machine.memory_mb} MiB does not fit"
        yield Check("bad", title, text, f"desktops.{desktops.provider}.memory_mb")
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
