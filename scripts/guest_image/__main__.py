"""Build the desktop image of virtual machines from the distribution's packages: `make guest-image`.

    packages -> own files -> kernel and initramfs -> disk -> published as DATA_DIR/images/NAME
Packages are fetched once; a second build with the same packages only redoes our own files and the disk.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from setup_common import REPOSITORY, SetupError
from setup_system import listed, missing_packages, root_prefix

from guest_image.build import build, inputs_digest
from guest_image.recipe import RECIPES


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
    path = f"PYTHONPATH={REPOSITORY / 'scripts'}"
    command = [*prefix, "env", keep, path, sys.executable, "-m", "guest_image", *sys.argv[1:]]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
