"""The Python environment in .venv, at exactly the pinned versions."""

import glob
import json
import subprocess
import sys
import urllib.error
import urllib.request

from requirement_files import HASHED, REQUIREMENTS
from setup_common import VENV, VENV_PYTHON, SetupError, announce, digest, is_done, mark_done, run

TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
TORCH_CUDA = HASHED / "torch-cuda.txt"
PROBE_TIMEOUT_S = 5
PIP_NOISE = ("Requirement already", "  ", "Looking", "WARNING: Location")


def install_python(*, with_tests: bool) -> bool:
    """Bring .venv to the pinned versions; False when it was there already."""
    names = ["base", "dev"] if with_tests else ["base"]
    expected = {name: expected_state(name) for name in names}
    if VENV_PYTHON.exists() and all(is_done(name, state) for name, state in expected.items()):
        return False
    make_environment()
    pip = [str(VENV_PYTHON), "-m", "pip", "install", "--progress-bar", "off"]
    hashed = [names[-1]] if with_tests else [names[-1], "docs"]
    by_hash = [option for name in hashed for option in ("-r", str(HASHED / f"{name}.txt"))]
    run([*pip, "--require-hashes", "--no-deps", *by_hash], "installing Python packages", quiet=PIP_NOISE)
    run([*pip, *torch_arguments(names[-1])], "installing torch", quiet=PIP_NOISE)
    for name, state in expected.items():
        mark_done(name, state)
    return True


def expected_state(name: str) -> str:
    """Digest of everything that decides what is installed for base.txt or dev.txt."""
    more = ["dev", "kubernetes", "s3", "sentry", "trackers"] if name == "dev" else []
    names = ["core", "training", "docs", "base", *more]
    files = [*(REQUIREMENTS / f"{name}.txt" for name in names), HASHED / f"{name}.txt", TORCH_CUDA]
    return digest([*files, f"{sys.version_info[:2]}"])


def make_environment() -> None:
    if (
        VENV_PYTHON.exists()
        and subprocess.run(
            [str(VENV_PYTHON), "-m", "pip", "--version"], check=False, stdout=subprocess.DEVNULL
        ).returncode
        == 0
    ):
        return
    try:
        run([sys.executable, "-m", "venv", "--clear", str(VENV)], "making the Python environment .venv")
    except SetupError as error:
        raise SetupError(
            f"{error}\nDebian keeps this part apart: sudo apt-get install python3-venv"
        ) from error


def torch_arguments(name: str) -> list[str]:
    """pip's arguments for what is left of requirements/NAME.txt: torch, whose builds come from two indexes.

    The build on PyPI, which brings gigabytes of CUDA libraries, is known by its hashes. A machine without an
    NVIDIA device takes the CPU build by its version, where one is in reach.
    """
    cpu_build = None if glob.glob("/dev/nvidia[0-9]*") else cpu_torch_options()
    if cpu_build is None:
        return ["--require-hashes", "--no-deps", "-r", str(TORCH_CUDA)]
    return ["-r", str(REQUIREMENTS / f"{name}.txt"), *cpu_build]


def cpu_torch_options() -> list[str] | None:
    """Options that make pip take torch's CPU build; None when none is in reach.

    pip takes it by itself where its configuration shows one (find-links, a mirror); else PyTorch's own index
    has it, when it is reachable.
    """
    if pip_sees_cpu_torch():
        return []
    try:
        urllib.request.urlopen(f"{TORCH_CPU_INDEX}/torch/", timeout=PROBE_TIMEOUT_S).close()
    except (urllib.error.URLError, TimeoutError):
        announce("no CPU build of torch in reach: PyPI's is much larger")
        return None
    return ["--extra-index-url", TORCH_CPU_INDEX]


def pip_sees_cpu_torch() -> bool:
    pins = (REQUIREMENTS / "training.txt").read_text().splitlines()
    torch = next(line for line in pins if line.startswith("torch=="))
    asked = subprocess.run(
        [
            str(VENV_PYTHON),
            "-m",
            "pip",
            "install",
            "--dry-run",
            "--ignore-installed",
            "--no-deps",
            "--quiet",
            "--report",
            "-",
            torch,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if asked.returncode:
        return False
    found = json.loads(asked.stdout)["install"]
    return any("+cpu" in package["metadata"]["version"] for package in found)
