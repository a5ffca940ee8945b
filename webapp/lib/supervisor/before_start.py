"""What has to be true before the first process starts: the lock, collected assets, imported tasks."""

import fcntl
import hashlib
import os
from importlib.metadata import version
from pathlib import Path

from django.conf import settings
from django.core.management import call_command, get_commands

from webapp.lib.host_links.certificates import Authority
from webapp.lib.host_links.service_address import ServiceAddress
from webapp.lib.static_files.npm_assets import PACKAGES, installed_version
from webapp.lib.supervisor.process_specs import hosts_certificate

TASK_SETS = ("first-desk",)
HOSTS_CERTIFICATE_DAYS = 825
"""Longer than an installation runs between two starts."""


class AlreadyRunning(Exception):
    """Raised when another supervisor holds the data folder; the message names it."""


def write_hosts_certificate(data_dir: Path, server: ServiceAddress) -> None:
    """A new certificate of our own authority for the server where hosts join, at every start."""
    issued = Authority.of(settings.SECRETS_DIR).issue(server.advertised, days=HOSTS_CERTIFICATE_DAYS)
    path = hosts_certificate(data_dir)
    path.touch(mode=0o600)
    path.write_text(issued.certificate + issued.key)


def hold_lock(data_dir: Path) -> int:
    """Take the data folder for this process and return the open lock file.

    The kernel lets go of it when the process ends, however it ends.
    """
    path = data_dir / "run" / "up.lock"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as exc:
        holder = os.read(handle, 32).decode() or "unknown"
        os.close(handle)
        raise AlreadyRunning(
            f"Deskhand runs already on {data_dir} (process {holder}). Stop it with Ctrl-C there, "
            "or set DESKHAND_DATA_DIR to another folder."
        ) from exc
    os.truncate(handle, 0)
    os.pwrite(handle, str(os.getpid()).encode(), 0)
    return handle


def collect_assets(*, force: bool = False) -> bool:
    """Collect static files when any of them changed; False when there was nothing to do.

    Raises AssetsMissing when the npm packages are not installed.
    """
    state = assets_state()
    stamp = Path(settings.STATIC_ROOT) / ".collected"
    if not force and stamp.is_file() and stamp.read_text() == state:
        return False
    call_command("collectstatic", interactive=False, verbosity=0, clear=True)
    stamp.write_text(state)
    return True


def assets_state() -> str:
    """A digest of the npm versions, and of every file of ours."""
    sha = hashlib.sha256()
    for package in PACKAGES:
        sha.update(f"{package} {installed_version(package.name)}\n".encode())
    for file in (file for folder in settings.STATICFILES_DIRS for file in sorted(Path(folder).rglob("*"))):
        status = file.stat()
        sha.update(f"{file} {status.st_size} {status.st_mtime_ns}\n".encode())
    sha.update(f"django {version('django')}\n".encode())
    return sha.hexdigest()


def import_task_sets() -> list[str]:
    """Bring the shipped task sets into the database; returns the names of those imported."""
    if "import_tasks" not in get_commands():
        return []
    for name in TASK_SETS:
        call_command("import_tasks", name, verbosity=0)
    return list(TASK_SETS)
