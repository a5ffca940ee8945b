"""The command line that puts a desktop in its sandbox, and its resource limits."""

import functools
import shutil
import subprocess
import sys
from pathlib import Path

from workers.desktops.contract import DesktopSpec
from workers.desktops.x11.system_root import OWN
from workers.processes.cgroups import Cgroups

GUEST = Path(__file__).resolve().parents[2] / "guest"
PROGRAM_ROOT = "/opt/deskhand"
HOME = "/home/user"
RUNTIME_DIR = "/run/user/1000"
RUN_DIR = "/run/desk"
CALL_FILTER = f"{PROGRAM_ROOT}/calls"
INNER_BWRAP = f"{PROGRAM_ROOT}/bwrap"
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
OUTER_BYTES = 4 << 20
"""Room of each writable folder of X server, window manager and agent."""
ETC = (
    "fonts", "alternatives", "xdg", "X11", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "dbus-1", "gtk-3.0",
    "mime.types", "mailcap", "nsswitch.conf", "python3.11", "python3", "bash.bashrc", "profile",
    "libreoffice", "chromium", "chromium.d",
)  # fmt: skip
# Moves itself into cgroups, sets limits, then becomes the command: no fork, so the parent stays the parent.
LAUNCHER = (
    'while [ "$1" != -- ]; do echo $$ > "$1" || exit 70; shift; done; shift; '
    'ulimit -c 0; ulimit -n 2048; ulimit -f {file_blocks}; {extra} exec "$@"'
)


@functools.cache
def sandbox_problem() -> str:
    """ "" when bubblewrap works here, else one sentence why not. Tried once per process."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return "bubblewrap (bwrap) is not installed; run `make setup`"
    argv = [bwrap, "--unshare-all", "--uid", "1000", "--gid", "1000", "--ro-bind", "/", "/"]
    inner = [
        "--proc",
        "/proc",
        bwrap,
        "--unshare-user",
        "--unshare-pid",
        "--disable-userns",
        "--ro-bind",
        "/",
        "/",
    ]
    # A checkout in a closed folder of another user cannot be shown even by root's bubblewrap.
    shown = ["--tmpfs", "/tmp", "--ro-bind", str(GUEST), "/tmp/guest"]
    for options, problem in (
        ([], "user namespaces are off"),
        (
            [*inner, "--ro-bind", "/", "/", "--proc", "/proc"],
            "bubblewrap is older than 0.8",
        ),
        (shown, f"{GUEST} cannot be shown to desktops; chmod a+rX the checkout and what is above it"),
    ):
        try:
            tried = subprocess.run(
                [*argv, *options, "true"], capture_output=True, text=True, timeout=10, check=False
            )
        except subprocess.TimeoutExpired:
            return "bubblewrap does not answer"
        if tried.returncode:
            return f"{problem}: {tried.stderr.strip()[:200]}"
    return ""


def sandbox_argv(
    folder: Path, spec: DesktopSpec, root: Path = OWN, weakened: frozenset[str] = frozenset()
) -> list[str]:
    """bwrap and its options for a desktop in `folder`; the program's argv follows it.

    `root` holds the system that is seen inside.
    """
    # By its full path: it is started with a PATH of its own, which need not hold the folder it lies in.
    argv = [bubblewrap(), "--unshare-all", "--uid", "1000", "--gid", "1000"]
    # Another name than inside the programs' space: the window manager ends only local programs by their pid.
    argv += ["--hostname", "outer"]
    # The agent makes the programs' space with these; nothing that it starts inherits them.
    argv += ["--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SYS_CHROOT"]
    argv += ["--die-with-parent", "--new-session", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin"]
    argv += ["--setenv", "LANG", "C.UTF-8", "--ro-bind", str(root / "usr"), "/usr"]
    for link in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        there = root / link
        argv += ["--symlink", f"usr/{link}", f"/{link}"] if there.is_symlink() else []
        argv += ["--ro-bind-try", str(there), f"/{link}"] if not there.is_symlink() else []
    for name in ETC:
        argv += ["--ro-bind-try", str(root / "etc" / name), f"/etc/{name}"]
    for name in ("passwd", "group", "machine-id"):
        argv += ["--ro-bind", str(folder / name), f"/etc/{name}"]
    argv += ["--symlink", "/usr/share/zoneinfo/Etc/UTC", "/etc/localtime"]  # not the host's
    argv += ["--ro-bind-try", str(root / "var/cache/fontconfig"), "/var/cache/fontconfig"]
    argv += ["--proc", "/proc", "--tmpfs", "/dev", "--dir", "/dev/shm"]
    for name in DEVICES:  # bwrap's own /dev needs one more user namespace, which the agent could not leave
        argv += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        argv += ["--symlink", f"/proc/self/{target}", f"/dev/{name}"]
    argv += ["--remount-ro", "/dev"]
    for path in (HOME, "/tmp", RUNTIME_DIR):
        argv += ["--size", str(OUTER_BYTES), "--perms", "0700", "--tmpfs", path]
    argv += ["--bind", str(folder / "run"), RUN_DIR, "--bind", str(folder / "x"), "/tmp/.X11-unix"]
    argv += ["--dir", "/run/space/home", "--dir", "/run/space/rest"]
    argv += ["--ro-bind", str(folder / "calls"), CALL_FILTER]
    if root == OWN:
        argv += ["--ro-bind", bubblewrap(), INNER_BWRAP]
    argv += ["--ro-bind", str(GUEST.parent / "__init__.py"), f"{PROGRAM_ROOT}/workers/__init__.py"]
    argv += ["--ro-bind", str(GUEST), f"{PROGRAM_ROOT}/workers/guest"]
    argv += ["--ro-bind", str(folder / "layout.json"), f"{PROGRAM_ROOT}/layout.json"]
    argv += ["--share-net"] if "network" in weakened else []
    argv += ["--ro-bind", "/", "/host"] if "files" in weakened else []
    if "namespaces" in weakened:
        argv += ["--perms", "0700", "--tmpfs", HOME, "--perms", "0700", "--tmpfs", "/dev/shm"]
    # The sandbox's root is a tmpfs too: read-only, so that only the wiped folders are writable.
    return [*argv, "--remount-ro", "/", "--chdir", PROGRAM_ROOT, "--"]


def bubblewrap() -> str:
    """Where it is installed."""
    return shutil.which("bwrap") or "bwrap"


def write_identity(folder: Path) -> None:
    """passwd, group and machine-id of the desktop's only user."""
    (folder / "passwd").write_text(f"user:x:1000:1000:User:{HOME}:/bin/bash\nroot:x:0:0:root:/root:/bin/sh\n")
    (folder / "group").write_text("user:x:1000:\nroot:x:0:\n")
    (folder / "machine-id").write_text("de5c4a9dde5c4a9dde5c4a9dde5c4a9d\n")


def launcher_argv(cgroups: Cgroups, spec: DesktopSpec, command: list[str]) -> list[str]:
    """The command under its limits. Without a memory group each process gets a limit of what it may write to:
    browsers reserve far more addresses than they use."""
    extra = ""
    if "memory" not in cgroups.folders:
        extra += f"ulimit -d {max(spec.memory_mb * 4, 2048) << 10};"
    script = LAUNCHER.format(file_blocks=(spec.home_mb << 20) // 512, extra=extra)
    return ["/bin/sh", "-c", script, "desk", *cgroups.procs_files, "--", *command]


if __name__ == "__main__":  # for who may not import this: the doctor
    found = sandbox_problem()
    sys.stdout.write(found or "bubblewrap works")
    sys.exit(bool(found))
