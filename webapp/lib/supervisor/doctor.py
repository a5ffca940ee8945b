"""What this machine can do: one small check per line of the doctor's table."""

import glob
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection

from training.contracts.config.providers.desk_host_registry import DESK_HOST
from training.contracts.config.providers.provider_info import ProviderInfo
from webapp.lib.disk_room import nearest_existing
from webapp.lib.static_files.npm_assets import PACKAGES, AssetsMissing, installed_version
from webapp.lib.supervisor.redis_server import RedisMissing, find_redis

SANDBOXED = tuple(info for info in DESK_HOST.values() if not info.is_virtual_machine)
MACHINES = tuple(info for info in DESK_HOST.values() if info.is_virtual_machine)
DESKTOP_USER = os.environ.get("DESKHAND_DESKTOP_USER") or "deskhand"
LOWEST_FREE_GB = 3
SANDBOX_TIMEOUT_S = 40
"""Two trials of ten seconds, and the start of Python on a busy machine."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the table."""

    name: str
    is_good: bool
    text: str
    """What was found; when it is not good, what to do."""
    is_needed: bool = True
    """False: everything works without it, only less well."""


def python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", sys.version_info >= (3, 11), f"{version} at {sys.executable}")


def cores() -> Finding:
    return Finding("cores", True, f"{os.cpu_count()}; load {os.getloadavg()[0]:.1f}")


def disk() -> Finding:
    free_gb = shutil.disk_usage(nearest_existing(settings.DATA_DIR)).free / 1e9
    text = f"{free_gb:.0f} GB free at {settings.DATA_DIR}"
    return Finding("disk", free_gb >= LOWEST_FREE_GB, f"{text}; {LOWEST_FREE_GB} GB needed")


def database() -> Finding:
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        return Finding("database", False, f"{settings.DATABASE_URL.split('@')[-1]}: {error}")
    return Finding("database", True, connection.vendor)


def redis() -> Finding:
    try:
        return Finding("redis", True, find_redis())
    except RedisMissing as error:
        return Finding("redis", False, str(error))


def assets() -> Finding:
    try:
        versions = [f"{package.name} {installed_version(package.name)}" for package in PACKAGES]
    except AssetsMissing as error:
        return Finding("assets", False, str(error))
    return Finding("assets", True, ", ".join(versions))


def programs_of(providers: tuple[ProviderInfo, ...]) -> list[str]:
    """What these need, each once."""
    return list(dict.fromkeys(name for info in providers for name in info.programs))


def desktop_programs() -> Finding:
    root = Path(os.environ.get("DESKHAND_DESKTOP_ROOT") or "/")
    # lexists: a link inside another root may be absolute.
    programs = programs_of(SANDBOXED)
    missing = [
        name
        for name in programs
        if not (shutil.which(name) if root == Path("/") else os.path.lexists(root / "usr/bin" / name))
    ]
    where = "" if root == Path("/") else f" in {root}"
    if missing:
        return Finding("desktops", False, f"missing{where}: {' '.join(missing)}; run `make setup`")
    return Finding("desktops", True, f"{len(programs)} programs found{where}")


def machines() -> Finding:
    """Whether virtual machines can run here; whether KVM really works is found by their first boot."""
    missing = [name for name in programs_of(MACHINES) if not shutil.which(name)]
    if missing:
        packages = " ".join(dict.fromkeys(info.packages for info in MACHINES))
        text = f"missing: {' '.join(missing)}; apt-get install {packages}"
        return Finding("machines", False, text, is_needed=False)
    images = sorted(path.parent.name for path in settings.DATA_DIR.glob("images/*/image.json"))
    if not images:
        text = f"no guest image in {settings.DATA_DIR / 'images'}; run `make guest-image`"
        return Finding("machines", False, text, is_needed=False)
    return Finding("machines", True, f"QEMU is there; images: {', '.join(images)}")


def isolation() -> Finding:
    """Whether desktops get a sandbox here, as their providers see it."""
    for check in filter(None, (info.isolation_check for info in DESK_HOST.values())):
        asked = subprocess.run(
            [sys.executable, "-m", check],
            cwd=settings.BASE_DIR,
            capture_output=True,
            text=True,
            timeout=SANDBOX_TIMEOUT_S,
            check=False,
        )
        if asked.returncode:
            problem = asked.stdout.strip() or asked.stderr.strip()[-200:]
            return Finding("isolation", False, f"{problem}: no desktops, or with --unsafe-desktops weak ones")
    who = f"; root's desk host goes on as user {DESKTOP_USER}" if os.geteuid() == 0 else ""
    return Finding("isolation", True, f"bubblewrap works{who}")


def gpus() -> Finding:
    devices = glob.glob("/dev/nvidia[0-9]*")
    return Finding("gpus", True, f"{len(devices)} NVIDIA devices" if devices else "none: training on the CPU")


def account() -> Finding:
    if os.geteuid() == 0:
        text = "root; only the desk host gives that up, an account of its own for all is safer"
        return Finding("account", False, text, is_needed=False)
    return Finding("account", True, f"user {os.geteuid()}")


CHECKS: tuple[Callable[[], Finding], ...] = (
    python,
    cores,
    disk,
    database,
    redis,
    assets,
    desktop_programs,
    machines,
    isolation,
    gpus,
    account,
)


def examine() -> list[Finding]:
    """All findings about this machine."""
    return [check() for check in CHECKS]
