"""Write requirements/hashed/ anew: the pins, each with the hashes of all files that its registry has of it.

    .venv/bin/python scripts/hash_requirements.py        after a change of requirements/*.txt

uv asks the registry for hashes alone (no file is downloaded). What a pin brings along is pinned by hand
already, so nothing is resolved, but for torch's CUDA build and SGLang. UV_INDEX_URL names another registry
than PyPI.
"""

import subprocess
import sys

from requirement_files import HASHED, HASHED_NAMES, UNHASHED, pins_of

HEAD = "# Written by scripts/hash_requirements.py; change requirements/{name}.txt instead.\n"
COMPILE = (
    *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--generate-hashes", "--universal"),
    *("--no-annotate", "--no-header"),
)

OF_GPU_HOSTS = ("--python-version", "3.11")


def main() -> int:
    HASHED.mkdir(exist_ok=True)
    for name in HASHED_NAMES:
        pins = {pin: version for pin, version in pins_of(name).items() if pin not in UNHASHED}
        write(name, name, pins, "--no-deps", "--python-version", "3.12")
    # Only what a GPU host has: the first is installed after base.txt, which holds the rest.
    ours = [f"--no-emit-package={pin}" for pin in pins_of("base") if pin not in UNHASHED]
    write("torch-cuda", "training", pins_of("base"), *ours, *OF_GPU_HOSTS)
    write("sglang", "sglang", pins_of("sglang"), *OF_GPU_HOSTS)
    return 0


def write(name: str, source: str, pins: dict[str, str], *options: str) -> None:
    """hashed/NAME.txt, whose pins a person changes in SOURCE.txt. Exits with uv's message when it fails."""
    text = "\n".join(f"{pin}=={version}" for pin, version in pins.items())
    compiled = subprocess.run(
        [*COMPILE, *options, "-"], input=text, stdout=subprocess.PIPE, text=True, check=False
    )
    if compiled.returncode:
        sys.exit(compiled.returncode)
    (HASHED / f"{name}.txt").write_text(HEAD.format(name=source) + compiled.stdout)


if __name__ == "__main__":
    sys.exit(main())
