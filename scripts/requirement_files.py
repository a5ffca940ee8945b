"""Reading requirements/*.txt: names, versions, hashes. Standard library only, for the set-up needs it."""

import re
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent.parent / "requirements"
HASHED = REQUIREMENTS / "hashed"
HASHED_NAMES = ("core", "base", "dev", "sentry", "osworld-lite", "osworld-office", "osworld-full")
UNHASHED = frozenset({"torch", "torchvision"})
"""Their CPU build comes from another index than the CUDA one, and brings other packages along."""
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
