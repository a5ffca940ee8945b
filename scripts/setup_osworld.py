"""OSWorld's own Python environment, .venv-osworld: its packages conflict with ours.

Levels: lite runs desktop-env and the evaluators that need no further package, office adds documents and
tables, full adds images, sound, browsers and text recognition (torch).
"""

import argparse
import shutil
import sys
import time

from requirement_files import HASHED, REQUIREMENTS
from setup_common import REPOSITORY, SetupError, announce, digest, run
from setup_python import PIP_NOISE, cpu_torch_options

FOLDER = REPOSITORY / ".venv-osworld"
PYTHON = FOLDER / "bin" / "python"
LEVEL_FILE = FOLDER / ".deskhand-level"
LEVELS = ("lite", "office", "full")


def install_osworld(level: str) -> bool:
    """Bring .venv-osworld to a level; False when it was there, or a higher one."""
    if installed_at_least(level):
        return False
    if not PYTHON.exists():
        run(
            [sys.executable, "-m", "venv", "--clear", str(FOLDER)],
            "making OSWorld's environment .venv-osworld",
        )
    pip = [str(PYTHON), "-m", "pip", "install", "--progress-bar", "off"]
    # Without dependencies: desktop-env's own pins ask for old versions of nearly everything and for torch,
    # which its code does not need. The files name every package.
    run(
        [*pip, "--no-deps", "--require-hashes", "-r", str(HASHED / pins(level).name)],
        f"installing level {level}",
        quiet=PIP_NOISE,
    )
    if level == "full":
        options = cpu_torch_options() or []
        run([*pip, "--no-deps", "-r", str(pins(level)), *options], "installing torch", quiet=PIP_NOISE)
    LEVEL_FILE.write_text(f"{level} {expected_state(level)}\n")
    return True


def pins(level: str):
    return REQUIREMENTS / f"osworld-{level}.txt"


def expected_state(level: str) -> str:
    """Digest of everything that decides what is installed."""
    return digest([pins(level), HASHED / pins(level).name])


def installed_at_least(level: str) -> bool:
    """The environment has this or a higher level, at the pinned versions of that one."""
    if not LEVEL_FILE.is_file() or not PYTHON.exists():
        return False
    have, _, state = LEVEL_FILE.read_text().strip().partition(" ")
    return have in LEVELS[LEVELS.index(level) :] and state == expected_state(have)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("level", choices=LEVELS, nargs="?", default="lite")
    parser.add_argument("--remove", action="store_true", help="remove the environment instead")
    options = parser.parse_args()
    if options.remove:
        shutil.rmtree(FOLDER, ignore_errors=True)
        return 0
    started = time.monotonic()
    try:
        changed = install_osworld(options.level)
    except SetupError as error:
        print(f"\nsetup: {error}", file=sys.stderr)
        return 1
    announce(f"OSWorld's environment {'done' if changed else 'is there'}, {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
