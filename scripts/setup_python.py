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
    by_hash = ["--require-hashes", "--no-deps", "-r", str(HASHED / f"{names[-1]}.txt")]
    run([*pip, *by_hash], "installing Python packages", quiet=PIP_NOISE)
    # What is left: torch, whose builds come from two indexes.
    run(
        [*pip, "-r", str(REQUIREMENTS / f"{names[-1]}.txt"), *torch_options()],
        "installing torch",
        quiet=PIP_NOISE,
    )
    for name, state in expected.items():
        mark_done(name, state)
    return True


def expected_state(name: str) -> str:
    """Digest of everything that decides what is installed for base.txt or dev.txt."""
    names = ["core", "training", "base", *(["dev", "sentry"] if name == "dev" else [])]
    files = [*(REQUIREMENTS / f"{name}.txt" for name in names), HASHED / f"{name}.txt"]
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


def torch_options() -> list[str]:
    """Options that make pip prefer torch's CPU build on a machine without an NVIDIA device.

    The build on PyPI brings gigabytes of CUDA libraries. pip takes the CPU build by itself where its
    configuration shows one (find-links, a mirror); else PyTorch's own index has it, when it is reachable.
    """
    if glob.glob("/dev/nvidia[0-9]*") or pip_sees_cpu_torch():
        return []
    try:
        urllib.request.urlopen(f"{TORCH_CPU_INDEX}/torch/", timeout=PROBE_TIMEOUT_S).close()
    except (urllib.error.URLError, TimeoutError):
        announce("no CPU build of torch in reach: taking PyPI's, which is much larger")
        return []
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
