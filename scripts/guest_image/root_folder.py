"""The guest's root folder: packages by mmdebstrap, then our own files on top.

The folder with nothing but packages is kept, so that a changed agent costs seconds instead of minutes.
"""

import json
import shutil
import subprocess
from pathlib import Path

from setup_common import REPOSITORY, SetupError, run

from guest_image.recipe import (
    BOOT_PACKAGES,
    HOME,
    KEPT,
    KERNEL_META_PACKAGE,
    KEYRING,
    LEFT_OUT,
    PROGRAM_ROOT,
    SUITE,
    USER,
    Recipe,
)

OVERLAYS = REPOSITORY / "workers" / "guest_image"
GUEST_PROGRAMS = REPOSITORY / "workers" / "guest"
PATH_FOLDERS = ("usr/local/bin", "usr/bin", "bin", "usr/games")
TERMINAL_KEY = (
    '<keybind key="C-A-t"><action name="Execute"><command>x-terminal-emulator</command></action></keybind>\n'
)
"""As on Ubuntu; tasks open their terminals by it."""
LAYOUT = "etc/deskhand/layout.json"
QUIET = ("I: skipping", "I: chroot architecture", "Get:", "Fetched", "W: Download is performed unsandboxed")


def install_packages(recipe: Recipe, root: Path, debs: Path, mirror: str) -> None:
    """Make `root` from the mirror; .deb files are kept in `debs` for the next time. Needs root."""
    debs.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(root, ignore_errors=True)
    kernel = f"apt-cache depends {KERNEL_META_PACKAGE} | sed -n 's/.*Depends: \\(linux-image-.*\\)/\\1/p'"
    hooks = [
        '--setup-hook=mkdir -p "$1"/var/cache/apt/archives'
        f' && cp -al {debs}/*.deb "$1"/var/cache/apt/archives/ 2>/dev/null || true',
        f'--customize-hook=cp -alf "$1"/var/cache/apt/archives/*.deb {debs}/',
        f'--customize-hook=cd {debs} && export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"'
        f" && apt-get download $({kernel} | head -1) {' '.join(BOOT_PACKAGES)}",
    ]
    options = ['APT::Install-Recommends "false"', 'Acquire::Languages "none"', 'Acquire::Retries "3"']
    # In a mount namespace of its own, so that an ended build leaves no /proc mounted in its folder.
    command = ["unshare", "--mount", "mmdebstrap", "--variant=minbase", "--mode=root", f"--keyring={KEYRING}"]
    command += [f"--aptopt={option}" for option in options]
    command += ["--dpkgopt=force-unsafe-io", *(f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT)]
    command += [f"--dpkgopt=path-include={path}" for path in KEPT]
    command += ["--skip=download/empty", "--skip=essential/unlink", *hooks]
    sources = [f"deb {mirror} {suite} main" for suite in (SUITE, f"{SUITE}-updates")]
    sources.append(f"deb {mirror}-security {SUITE}-security main")
    command += [f"--include={','.join(recipe.packages)}", SUITE, str(root), *sources]
    run(command, f"installing {len(recipe.packages)} packages and what they need", quiet=QUIET)


def add_own_files(root: Path, recipe: Recipe) -> None:
    """The user, the agent and the start-up program."""
    for folder in (OVERLAYS / overlay for overlay in recipe.overlays):
        shutil.copytree(folder, root, dirs_exist_ok=True, symlinks=True, copy_function=copy_anew)
        for program in folder.glob("usr/*bin/*"):
            if not program.is_symlink():
                (root / program.relative_to(folder)).chmod(0o755)
    layout = root / LAYOUT
    write_anew(layout, json.dumps(json.loads(layout.read_text()) | dict(recipe.layout), indent=1) + "\n")
    for name, program in recipe.hard_links:
        inside(root, ["ln", "--force", program, name], f"linking {name}")
    for name, program in recipe.alternatives:
        # No log: that file may be a link into the kept folder of packages.
        choose = ["update-alternatives", "--log", "/dev/null", "--set", name, program]
        inside(root, choose, f"choosing {name}")
    etc = root / "etc"
    write_anew(etc / "hostname", "desk\n")
    write_anew(etc / "hosts", "127.0.0.1 localhost desk\n::1 localhost desk\n")
    write_anew(etc / "resolv.conf", "nameserver 10.0.2.3\n")
    write_anew(etc / "fstab", "/dev/vda / ext4 rw,noatime 0 0\n")
    write_anew(etc / "machine-id", "de5c4a9dde5c4a9dde5c4a9dde5c4a9d\n")
    _add_programs(root / PROGRAM_ROOT.lstrip("/"))
    _add_user(root)
    # mke2fs keeps whole seconds only, and a font cache whose folder's time differs is read no more.
    fonts = ["find", "/usr/share/fonts", "/usr/local/share/fonts", "-type", "d"]
    inside(root, [*fonts, "-exec", "touch", "-d", "@1700000000", "{}", "+"], "dating the font folders")
    inside(root, ["fc-cache", "--system-only", "--force"], "making the font cache")


def write_anew(path: Path, text: str) -> None:
    """Write a file in place of another, which may be a link into the kept folder of packages."""
    path.unlink(missing_ok=True)
    path.write_text(text)


def copy_anew(source: str, target: str) -> None:
    """Copy a file in place of another, as `write_anew` does it."""
    Path(target).unlink(missing_ok=True)
    shutil.copy2(source, target)


def _add_programs(target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(
        GUEST_PROGRAMS, target / "workers" / "guest", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(GUEST_PROGRAMS.parent / "__init__.py", target / "workers" / "__init__.py")
    # Only in machines: in a sandbox the window manager is outside the programs' space.
    config = target / "workers" / "guest" / "openbox.xml"
    config.write_text(config.read_text().replace("</keyboard>", f"{TERMINAL_KEY}</keyboard>"))


def _add_user(root: Path) -> None:
    known = (root / "etc/passwd").read_text()
    if f"\n{USER}:" not in known:
        inside(
            root,
            ["useradd", "--uid", "1000", "--user-group", "--shell", "/bin/bash", USER],
            "adding the user",
        )
    home = root / HOME.lstrip("/")
    shutil.copytree(GUEST_PROGRAMS / "skeleton", home, dirs_exist_ok=True)
    for folder in ("Desktop", "Documents", "Downloads", "Music", "Pictures", "Templates", "Videos"):
        (home / folder).mkdir(exist_ok=True)
    inside(root, ["chown", "-R", f"{USER}:{USER}", HOME], "owning HOME")
    home.chmod(0o755)


def compile_python(root: Path) -> None:
    """Bytecode of the agent and the packages: under emulation compiling at start costs seconds."""
    script = (
        "import compileall, sys; "
        f"sys.exit(not all(compileall.compile_dir(d, quiet=1, workers=0) for d in "
        f"('{PROGRAM_ROOT}', '/usr/lib/python3/dist-packages', '/usr/lib/python3.11')))"
    )
    inside(root, ["python3", "-c", script], "compiling Python")


def inside(root: Path, command: list[str], what: str, stdin: str = "") -> str:
    """Run a command in the guest's root folder. Raises SetupError with its last words."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root"}
    done = subprocess.run(
        ["chroot", str(root), *command],
        input=stdin,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SetupError(f"{what} failed in the guest's root folder: {(done.stderr or done.stdout)[-400:]}")
    return done.stdout


def installed_versions(root: Path) -> dict[str, str]:
    """package -> version of everything in the guest."""
    listed = inside(root, ["dpkg-query", "-W", "-f=${Package} ${Version}\n"], "listing packages")
    return dict(line.split(" ", 1) for line in listed.splitlines())


def commands(root: Path) -> list[str]:
    """Names of all programs on the PATH of the guest's user, sorted."""
    found: set[str] = set()
    for folder in PATH_FOLDERS:
        place = root / folder
        if place.is_dir() and not place.is_symlink():
            found |= {path.name for path in place.iterdir() if path.is_symlink() or path.is_file()}
    return sorted(found)
