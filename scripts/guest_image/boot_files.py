"""Kernel and initramfs of the guest, unpacked from Debian's packages without installing them."""

import shutil
import subprocess
from pathlib import Path

from setup_common import REPOSITORY, SetupError

from guest_image.recipe import KERNEL_MODULES

INITRAMFS = REPOSITORY / "workers" / "guest_image" / "initramfs"


def newest_deb(debs: Path, pattern: str) -> Path:
    """The last fetched package of that name. Raises SetupError."""
    found = sorted(debs.glob(pattern), key=lambda path: path.stat().st_mtime)
    if not found:
        raise SetupError(f"no {pattern} in {debs}; run `make guest-image ARGS=--fresh`")
    return found[-1]


def unpack(deb: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["dpkg-deb", "-x", str(deb), str(target)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SetupError(f"{deb.name} cannot be unpacked: {done.stderr[-300:]}")


def make_boot_files(work: Path, debs: Path, vmlinuz: Path, initrd: Path) -> str:
    """Write kernel and initramfs; returns the kernel's version."""
    kernel, busybox = work / "kernel", work / "busybox"
    unpack(newest_deb(debs, "linux-image-[0-9]*.deb"), kernel)
    unpack(newest_deb(debs, "busybox-static_*.deb"), busybox)
    image = next((kernel / "boot").glob("vmlinuz-*"))
    version = image.name.removeprefix("vmlinuz-")
    shutil.copyfile(image, vmlinuz)
    subprocess.run(["depmod", "-b", str(kernel), version], check=True, capture_output=True)
    _make_initramfs(work / "initramfs", kernel / "lib/modules" / version, busybox, initrd)
    return version


def _make_initramfs(tree: Path, modules: Path, busybox: Path, initrd: Path) -> None:
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "bin").mkdir(parents=True)
    (tree / "modules").mkdir()
    program = next(path for path in busybox.glob("*/busybox") if path.is_file())
    for source, name in ((program, "bin/busybox"), (INITRAMFS / "init", "init")):
        shutil.copyfile(source, tree / name)
        (tree / name).chmod(0o755)
    ordered = in_load_order(modules, KERNEL_MODULES)
    for path in ordered:
        shutil.copyfile(modules / path, tree / "modules" / Path(path).name)
    names = [Path(path).name for path in ordered]
    (tree / "modules" / "order").write_text("".join(f"{name}\n" for name in names))
    with open(initrd, "wb") as output:
        listing = subprocess.run(
            ["find", ".", "-mindepth", "1"], cwd=tree, capture_output=True, check=True
        ).stdout
        # busybox brings its own cpio, so the host needs none.
        subprocess.run(
            [str(program), "cpio", "-o", "-H", "newc"], cwd=tree, input=listing, stdout=output,
            stderr=subprocess.PIPE, check=True,
        )  # fmt: skip


def in_load_order(modules: Path, wanted: tuple[str, ...]) -> list[str]:
    """Paths of the wanted modules, each after those that it needs. Raises SetupError for an unknown one."""
    needs: dict[str, list[str]] = {}
    by_name: dict[str, str] = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        needs[path] = rest.split()
        by_name[Path(path).name.partition(".")[0].replace("-", "_")] = path
    built_in = {
        Path(line).stem.replace("-", "_") for line in (modules / "modules.builtin").read_text().splitlines()
    }
    ordered: list[str] = []
    for name in wanted:
        if name in built_in:
            continue
        if name not in by_name:
            raise SetupError(f"the kernel has no module {name}; correct KERNEL_MODULES")
        # modules.dep lists what a module needs in the reverse of the order in which it has to be loaded.
        for path in [*reversed(needs[by_name[name]]), by_name[name]]:
            if path not in ordered:
                ordered.append(path)
    return ordered
