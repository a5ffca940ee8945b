"""Reading requirements/*.txt: names, versions, hashes. Standard library only, for the set-up needs it."""

import re
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent.parent / "requirements"
HASHED = REQUIREMENTS / "hashed"
HASHED_NAMES = (
    *("core", "docs", "base", "dev", "kubernetes", "s3", "sentry", "trackers", "models"),
    *("osworld-lite", "osworld-office", "osworld-full"),
)
RESOLVED_NAMES = ("torch-cuda", "sglang")
"""Pins that bring along what no list of ours names: torch as PyPI has it (CUDA), and SGLang's environment."""
UNHASHED = frozenset({"torch", "torchvision"})
"""In those lists. Their CPU build comes from an index of its own, the CUDA one from `torch-cuda`."""
PIN = re.compile(r"([A-Za-z0-9._-]+)==([^\s;\\]+)")


def pins_of(name: str) -> dict[str, str]:
    """Package -> version of requirements/NAME.txt and of what it includes."""
    found: dict[str, str] = {}
    for line in (REQUIREMENTS / f"{name}.txt").read_text().splitlines():
        if line.startswith("-r "):
            found |= pins_of(line[3:].strip().removesuffix(".txt"))
        elif pin := PIN.match(line):
            found[normal(pin[1])] = pin[2]
    return found


def resolved_from(name: str) -> dict[str, str]:
    """The pins that hashed/NAME.txt was resolved from."""
    if name == "torch-cuda":
        return {pin: version for pin, version in pins_of("training").items() if pin in UNHASHED}
    return pins_of(name)


def hashes_of(name: str) -> dict[tuple[str, str], list[str]]:
    """(package, version) -> hashes of requirements/hashed/NAME.txt."""
    found: dict[tuple[str, str], list[str]] = {}
    last: list[str] = []
    for line in (HASHED / f"{name}.txt").read_text().splitlines():
        if pin := PIN.match(line):
            last = found.setdefault((normal(pin[1]), pin[2]), [])
        last += re.findall(r"--hash=sha256:([0-9a-f]{64})", line)
    return found


def normal(name: str) -> str:
    """One spelling of a package's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
