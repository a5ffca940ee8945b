"""Go on as a user that owns nothing else: the desk host does so when root starts it.

A desktop's user is the user of its desk host as seen by the kernel. Root's rights over the machine are in
its user number (it may write /proc/sys), not only in capabilities, so a sandbox made by root is a weak one.
"""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from workers.processes.private_view import NoView, show_only

USER_VARIABLE = "DESKHAND_DESKTOP_USER"
USER = "deskhand"
KEPT_VARIABLES = ("PATH", "LANG", "TZ", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONWARNINGS")
HIDDEN_WORDS = ("SECRET", "TOKEN", "PASSWORD", "DSN")


class NoAccount(Exception):
    """Raised when this process cannot go on as another user; the message says why and what to do."""


@dataclass(frozen=True)
class Account:
    """A user of this machine."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    """Further groups: the one that may use /dev/kvm."""


def own_account() -> Account:
    """The user of desktops; made when the machine has none. Raises NoAccount."""
    name = os.environ.get(USER_VARIABLE) or USER
    found = _find(name) or _make(name)
    if found.pw_uid == 0:
        raise NoAccount(f"{USER_VARIABLE}={name} is root; name another user")
    try:
        kvm = os.stat("/dev/kvm").st_gid
    except FileNotFoundError:
        kvm = 0
    return Account(name, found.pw_uid, found.pw_gid, (kvm,) if kvm else ())


def _find(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _make(name: str) -> pwd.struct_passwd:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin")
    said = "useradd is not installed"
    if useradd is not None:
        command = [useradd, "--system", "--no-create-home", "--home-dir", "/nonexistent", "--user-group"]
        made = subprocess.run(
            [*command, "--shell", "/usr/sbin/nologin", name], capture_output=True, text=True, check=False
        )
        said = made.stderr.strip()
    found = _find(name)  # perhaps another desk host has just made it
    if found is None:
        raise NoAccount(
            f"user {name} could not be made ({said}); make one and set {USER_VARIABLE} to its name"
        )
    return found


def give(paths: Iterable[Path], account: Account) -> None:
    """Make folders and all in them the account's. Files with a second name elsewhere stay as they are."""
    for path in paths:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.chown(path, account.uid, account.gid)
        for folder, folders, files in os.walk(path):
            for name in (*folders, *files):
                there = os.lstat(os.path.join(folder, name))
                if there.st_uid != account.uid and (name in folders or there.st_nlink == 1):
                    os.lchown(os.path.join(folder, name), account.uid, account.gid)


def lend(folder: Path, names: Iterable[str], account: Account) -> None:
    """Let the account read these files of a closed folder, and neither list nor read the others."""
    files = [folder / name for name in names if (folder / name).is_file()]
    if not files:
        return
    os.chown(folder, -1, account.gid)
    folder.chmod(0o710)
    for path in files:
        os.chown(path, account.uid, account.gid, follow_symlinks=False)


def go_on_as(
    account: Account, argv: list[str], *, shown: Iterable[Path], home: Path, passed: Iterable[str] = ()
) -> NoReturn:
    """Become `argv` as this user, with the same process id and open files marked inheritable.

    `shown`: folders that it needs although folders above them may be closed to it. `passed`: variables of
    this process's environment that it may know besides the harmless ones. Raises NoAccount.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise NoAccount("setpriv is not installed; apt-get install util-linux")
    python = [Path(folder) for folder in {sys.prefix, sys.base_prefix, *sys.path} if os.path.isdir(folder)]
    try:
        show_only([*shown, *python], account.uid, account.gid)
    except NoView as exc:
        raise NoAccount(
            f"user {account.name} cannot be shown what it needs: {exc}; "
            "start Deskhand as an ordinary user, or from a folder that all users may enter"
        ) from exc
    command = [setpriv, f"--reuid={account.uid}", f"--regid={account.gid}", "--pdeathsig=keep"]
    groups = ",".join(map(str, account.groups))
    command += [f"--groups={groups}" if groups else "--clear-groups", "--inh-caps=-all", "--"]
    extra = {name: os.environ[name] for name in passed if name in os.environ}
    os.execve(setpriv, [*command, *argv], kept_environment() | extra | {"HOME": str(home)})


def kept_environment() -> dict[str, str]:
    """What the account may know of this process's environment: no secrets, no addresses of databases."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in KEPT_VARIABLES
        or (name.startswith("DESKHAND_") and not any(word in name for word in HIDDEN_WORDS))
    }
