"""SGLang's own Python environment, .venv-sglang: it pins another torch and another transformers than ours.

About 10 GB, for hosts with NVIDIA GPUs. What it installs: requirements/sglang.txt and what that brings
along, by the hashes of requirements/hashed/sglang.txt.
"""

import argparse
import shutil
import sys
import time

from requirement_files import HASHED
from setup_common import REPOSITORY, SetupError, announce, digest, run
from setup_python import PIP_NOISE

FOLDER = REPOSITORY / ".venv-sglang"
PYTHON = FOLDER / "bin" / "python"
STATE_FILE = FOLDER / ".deskhand-state"
PINS = HASHED / "sglang.txt"


def install_sglang(*, without_gpu: bool) -> bool:
    """Bring .venv-sglang to the pinned versions; False when it was there. Raises SetupError."""
    if is_installed():
        return False
    if not without_gpu and shutil.which("nvidia-smi") is None:
        raise SetupError(
            "no NVIDIA driver here (nvidia-smi), and SGLang is of no use without; --without-gpu installs it "
            "all the same, e.g. for an image"
        )
    if not PYTHON.exists():
        run(
            [sys.executable, "-m", "venv", "--clear", str(FOLDER)],
            "making SGLang's environment .venv-sglang",
        )
    pip = [str(PYTHON), "-m", "pip", "install", "--progress-bar", "off"]
    by_hash = ["--require-hashes", "--no-deps", "-r", str(PINS)]
    run([*pip, *by_hash], "installing SGLang (several GB)", quiet=PIP_NOISE)
    run([str(PYTHON), "-c", "import sglang.srt.server_args"], "looking whether it can be imported")
    STATE_FILE.write_text(digest([PINS]) + "\n")
    return True


def is_installed() -> bool:
    """The environment is at the pinned versions."""
    if not STATE_FILE.is_file() or not PYTHON.exists():
        return False
    return STATE_FILE.read_text().strip() == digest([PINS])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--remove", action="store_true", help="remove the environment instead")
    parser.add_argument("--without-gpu", action="store_true", help="install it also where there is no driver")
    options = parser.parse_args()
    if options.remove:
        shutil.rmtree(FOLDER, ignore_errors=True)
        return 0
    started = time.monotonic()
    try:
        changed = install_sglang(without_gpu=options.without_gpu)
    except SetupError as error:
        print(f"\nsetup: {error}", file=sys.stderr)
        return 1
    announce(f"SGLang's environment {'done' if changed else 'is there'}, {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
