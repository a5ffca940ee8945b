"""Build the desktop image of virtual machines from the distribution's packages: `make guest-image`.

    packages -> own files -> kernel and initramfs -> disk -> published as DATA_DIR/images/NAME
Packages are fetched once; a second build with the same packages only redoes our own files and the disk.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from guest_image_boot import make_boot_files
from guest_image_disk import DESCRIPTION, describe, make_disk, publish
from guest_image_recipe import DEFAULT_MIRROR, KEPT, LEFT_OUT, RECIPES, SUITE, Recipe
from guest_image_root import (
    GUEST_PROGRAMS,
    OVERLAY,
    add_own_files,
    compile_python,
    install_packages,
    installed_versions,
)
from setup_common import REPOSITORY, SetupError, announce, digest
from setup_system import listed, missing_packages, root_prefix

FREE_MB = 4096


def main() -> int:
    options = arguments()
    recipe = RECIPES[options.recipe]
    if options.print_inputs:
        print(inputs_digest(recipe))
        return 0
    try:
        check_tools()
        if os.geteuid():
            return again_as_root()
        build(recipe, Path(options.data_dir).resolve(), options)
    except SetupError as error:
        print(f"\nguest-image: {error}", file=sys.stderr)
        return 1
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make guest-image", description=__doc__)
    parser.add_argument("recipe", nargs="?", default="debian-desk", choices=sorted(RECIPES))
    default = os.environ.get("DESKHAND_DATA_DIR") or str(REPOSITORY / "var")
    parser.add_argument(
        "--data-dir", default=default, help="where images are published (default: %(default)s)"
    )
    parser.add_argument("--mirror", default="", help="Debian mirror (default: the one of this machine)")
    parser.add_argument("--fresh", action="store_true", help="install the packages anew, with their updates")
    parser.add_argument("--if-changed", action="store_true", help="do nothing when nothing has changed")
    parser.add_argument("--prune", action="store_true", help="remove versions that are no longer published")
    parser.add_argument("--print-inputs", action="store_true", help="only print the key for a build cache")
    return parser.parse_args()


def check_tools() -> None:
    """Raises SetupError with the command that installs what is missing."""
    if shutil.which("dpkg-query") is None:
        raise SetupError("images are built on Debian or Ubuntu: dpkg is not here")
    missing = missing_packages(listed("system-vm.txt"))
    if missing:
        raise SetupError(
            f"missing system packages: {' '.join(missing)}\nRun `scripts/setup --vm` (or `make guest-image`)."
        )


def again_as_root() -> int:
    """Packages are unpacked with their owners, which needs root."""
    prefix = root_prefix()
    if prefix is None:
        raise SetupError("building an image needs root: run it as root, or allow sudo without a password")
    keep = f"DESKHAND_DATA_DIR={os.environ.get('DESKHAND_DATA_DIR', '')}"
    command = [*prefix, "env", keep, sys.executable, __file__, *sys.argv[1:]]
    return subprocess.run(command, check=False).returncode


def inputs_digest(recipe: Recipe) -> str:
    """Changes whenever the image would come out different (new package versions aside)."""
    folders = (OVERLAY.parent, GUEST_PROGRAMS)
    files = sorted(p for f in folders for p in f.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    builders = sorted((REPOSITORY / "scripts").glob("guest_image*.py"))
    names = [str(path.relative_to(REPOSITORY)) for path in [*files, *builders]]
    return digest([repr(recipe), *names, *files, *builders])[:16]


def build(recipe: Recipe, data_dir: Path, options: argparse.Namespace) -> None:
    """All phases, each with its time. Raises SetupError; the published image is untouched then."""
    images, cache = data_dir / "images", data_dir / "cache" / "guest-image"
    inputs = inputs_digest(recipe)
    if options.if_changed and published_inputs(images / recipe.name) == inputs:
        announce(f"{recipe.name} is up to date")
        if options.prune:
            prune(images, recipe.name)
        return
    remove_abandoned(cache, images)
    work = cache / f"work-{recipe.name}-{os.getpid()}"
    draft = images / f".draft-{recipe.name}-{os.getpid()}"
    for folder in (cache, images, work, draft):
        folder.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(data_dir).free < FREE_MB << 20:
        raise SetupError(f"less than {FREE_MB} MiB are free in {data_dir}")
    laps: dict[str, float] = {}
    try:
        description = run_phases(recipe, cache, work, draft, options, laps, inputs)
        description["build_s"] = {**laps, "total": round(sum(laps.values()), 1)}
        link = publish(draft, images, recipe.name, description)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(draft, ignore_errors=True)
    if options.prune:
        prune(images, recipe.name)
    size_mb = description["files"]["disk"]["bytes"] / 1e6
    announce(f"{link}: {size_mb:.0f} MB, built in {sum(laps.values()):.0f} s")


def run_phases(
    recipe: Recipe, cache: Path, work: Path, draft: Path, options: argparse.Namespace, laps: dict, inputs: str
) -> dict:
    def timed(name: str, function: Callable, *arguments: object) -> object:
        started = time.monotonic()
        result = function(*arguments)
        laps[name] = round(time.monotonic() - started, 1)
        announce(f"{name}: {laps[name]} s")
        return result

    debs, root = cache / "debs", work / "root"
    timed("packages", packages_root, recipe, cache, root, options)
    timed("own files", add_own_files, root)
    timed("bytecode", compile_python, root)
    kernel = timed("kernel", make_boot_files, work, debs, draft / "vmlinuz", draft / "initrd.img")
    timed("disk", make_disk, root, work, draft / "disk.qcow2", recipe.slack_mb)
    return describe(recipe, draft, str(kernel), installed_versions(root), inputs)


def packages_root(recipe: Recipe, cache: Path, root: Path, options: argparse.Namespace) -> None:
    """The folder with only packages, made anew when their list changed, as hard links.

    A copy takes minutes on a busy disk; so who changes a file below `root` replaces it (`write_anew`).
    """
    key = digest([*recipe.packages, *LEFT_OUT, *KEPT, SUITE])[:16]
    kept = cache / f"packages-{recipe.name}-{key}"
    if options.fresh or not kept.is_dir():
        fresh = cache / f"fresh-{recipe.name}-{os.getpid()}"
        install_packages(recipe, fresh, cache / "debs", options.mirror or host_mirror())
        for old in cache.glob(f"packages-{recipe.name}-*"):
            shutil.rmtree(old)
        os.replace(fresh, kept)
    subprocess.run(["cp", "-al", str(kept), str(root)], check=True)


def host_mirror() -> str:
    """The Debian mirror that this machine itself uses, else Debian's own."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in shown.stdout.splitlines():
        uri, _, release = line.partition(" ")
        if release == SUITE and uri.rstrip("/").endswith("/debian"):
            return uri.rstrip("/")
    return DEFAULT_MIRROR


def remove_abandoned(*folders: Path) -> None:
    """Remove what builds left that were killed: their folders end with their process id."""
    for folder in folders:
        for path in [p for mark in ("fresh-*", "work-*", ".draft-*") for p in folder.glob(mark)]:
            pid = path.name.rpartition("-")[2]
            if pid.isdigit() and not Path(f"/proc/{pid}").exists():
                shutil.rmtree(path, ignore_errors=True)


def prune(images: Path, name: str) -> None:
    """Remove every version of an image but the published one. Machines started from them cannot be cloned."""
    current = (images / name).resolve()
    for version in (images / "versions").glob(f"{name}-????????????"):
        if version != current:
            shutil.rmtree(version)
            announce(f"removed {version.name}")


def published_inputs(link: Path) -> str:
    try:
        return json.loads((link / DESCRIPTION).read_text())["inputs"]
    except FileNotFoundError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
