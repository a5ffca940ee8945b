"""Ask PyPI and npm for known vulnerabilities of the pinned versions. Exit 1 names each with what mends it.

A registry that cannot be asked (a mirror, no network) is said so and passes: `make check` works offline.
"""

import concurrent.futures
import json
import os
import sys

import httpx
from requirement_files import REQUIREMENTS, pins_of

PYPI = os.environ.get("DESKHAND_CHECK_PYPI", "https://pypi.org/pypi")
NPM = os.environ.get("DESKHAND_CHECK_NPM", "https://registry.npmjs.org/-/npm/v1/security/advisories/bulk")
FILES = ("dev", "osworld-full")
TIMEOUT_S = 10
THREADS = 16
ACCEPTED: dict[str, str] = {}
"""Advisory -> why it does not concern us."""


class Unreachable(Exception):
    """Raised when a registry gives no answer that could be read."""


def main() -> int:
    found = []
    for registry, ask in (("PyPI", python_advisories), ("npm", npm_advisories)):
        try:
            found += ask()
        except Unreachable as error:
            print(f"advisories of {registry} are not checked: {error}")
        else:
            print(f"advisories of {registry} are checked")
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


def python_advisories() -> list[str]:
    """One line per vulnerability of a pinned version. Raises Unreachable."""
    pins = sorted({pin for name in FILES for pin in pins_of(name).items()})
    with httpx.Client(timeout=TIMEOUT_S, follow_redirects=True) as client:
        _of_package(client, *pins[0])  # one question tells whether there is a registry
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            answers = list(pool.map(lambda pin: _of_package(client, *pin), pins))
    return [line for lines in answers for line in lines]


def _of_package(client: httpx.Client, name: str, version: str) -> list[str]:
    answer = _json(lambda: client.get(f"{PYPI}/{name}/{version.partition('+')[0]}/json"))
    return [
        f"{name}=={version}: {one['id']} {one.get('summary') or ''} (fixed in {', '.join(one['fixed_in'])})"
        for one in answer.get("vulnerabilities", [])
        if not one.get("withdrawn") and one["id"] not in ACCEPTED
    ]


def npm_advisories() -> list[str]:
    """The same for the packages of package-lock.json. Raises Unreachable."""
    lock = json.loads((REQUIREMENTS.parent / "package-lock.json").read_text())
    packages = {path.rpartition("node_modules/")[2]: row for path, row in lock["packages"].items() if path}
    wanted = {name: [row["version"]] for name, row in packages.items()}
    answer = _json(lambda: httpx.post(NPM, json=wanted, timeout=TIMEOUT_S))
    return [
        f"{name}: {one['url']} {one['title']} (affected: {one['vulnerable_versions']})"
        for name, advisories in answer.items()
        for one in advisories
        if str(one["id"]) not in ACCEPTED
    ]


def _json(ask) -> dict:
    try:
        answer = ask()
        answer.raise_for_status()
        return answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise Unreachable((str(error) or type(error).__name__).splitlines()[0]) from error


if __name__ == "__main__":
    sys.exit(main())
