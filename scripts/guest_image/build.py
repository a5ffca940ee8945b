"""The phases of a build: packages, own files, kernel, disk, publishing; and what older builds left."""

import argparse
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from setup_common import REPOSITORY, SetupError, announce, digest

from guest_image.boot_files import make_boot_files
from guest_image.disk import DESCRIPTION, describe, make_disk, publish
from guest_image.recipe import DEFAULT_MIRROR, KEPT, LEFT_OUT, SUITE, Recipe
from guest_image.root_folder import (
    GUEST_PROGRAMS,
    OVERLAYS,
    add_own_files,
    commands,
    compile_python,
    install_packages,
    installed_versions,
)

FREE_MB = 4096


def inputs_digest(recipe: Recipe) -> str:
    """Changes whenever the image would come out different (new package versions aside)."""
    folders = (OVERLAYS, GUEST_PROGRAMS)
    files = sorted(p for f in folders for p in f.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    builders = sorted((REPOSITORY / "scripts" / "guest_image").glob("*.py"))
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
    timed("own files", add_own_files, root, recipe)
    timed("bytecode", compile_python, root)
    kernel = timed("kernel", make_boot_files, work, debs, draft / "vmlinuz", draft / "initrd.img")
    timed("disk", make_disk, root, work, draft / "disk.qcow2", recipe.slack_mb)
    return describe(recipe, draft, str(kernel), installed_versions(root), commands(root), inputs)


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
