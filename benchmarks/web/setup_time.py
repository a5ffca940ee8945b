"""Bar `setup_time`: from a clean clone to a signed-in page with one command; and the second start.

Clones this repository's HEAD into a temporary folder and runs `make up` there twice, on free ports. System
packages that are already installed are not installed again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.report import finish, print_table
from testing.private_installation import INHERITED_SETTINGS, REPOSITORY
from webapp.lib.supervisor.orphans import marked
from webapp.lib.supervisor.ports import free_port

FIRST_BAR_S = 600
SECOND_BAR_S = 10
GIVE_UP_S = 1200


@dataclass(frozen=True, slots=True)
class Start:
    """One `make up`."""

    ready_s: float
    """Until both queues had executed a job and the closing table was printed."""
    signed_in_s: float
    """Until a page answered 200 to a signed-in browser."""
    stop_s: float
    queues: dict[str, bool]
    num_left: int
    """Processes that were still there after Ctrl-C."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-pip-cache", action="store_true", help="download every package again")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="deskhand-clone-", dir="/tmp"))
    clone = folder / "deskhand"
    try:
        began = time.monotonic()
        subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
        cloned_s = time.monotonic() - began
        environment = clean_environment(no_cache=options.no_pip_cache)
        first = make_up(clone, environment)
        second = make_up(clone, environment)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return report(cloned_s, first, second, cached=not options.no_pip_cache)


def clean_environment(*, no_cache: bool) -> dict[str, str]:
    """The caller's environment without anything that points at another installation."""
    kept = {name: text for name, text in os.environ.items() if name not in INHERITED_SETTINGS}
    kept["DESKHAND_REDIS_PORT"] = str(free_port())
    if no_cache:
        kept["PIP_NO_CACHE_DIR"] = "1"
    return kept


def make_up(clone: Path, environment: dict[str, str]) -> Start:
    """Run `make up` as a terminal does, sign in, and press Ctrl-C. Raises RuntimeError when it fails."""
    port = free_port()
    log = clone.parent / "up.log"
    ready_file = clone / "var" / "run" / "ready.json"
    began = time.monotonic()
    with log.open("w") as output:
        process = subprocess.Popen(
            ["make", "up", f"ARGS=--port {port}"],
            cwd=clone,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        while not ready_file.exists():
            if process.poll() is not None or time.monotonic() - began > GIVE_UP_S:
                raise RuntimeError(f"make up did not become ready:\n{log.read_text()[-4000:]}")
            time.sleep(0.05)
        ready_s = time.monotonic() - began
        queues = json.loads(ready_file.read_text())["queues"]
        sign_in(f"http://127.0.0.1:{port}", clone / "var" / "first-login.txt")
        signed_in_s = time.monotonic() - began
    finally:
        stopping = time.monotonic()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        process.wait(120)
    left = [pid for pid, mark in marked() if mark.startswith(f"{clone}/")]
    return Start(ready_s, signed_in_s, time.monotonic() - stopping, queues, len(left))


def sign_in(url: str, login: Path) -> None:
    """Post the login form and open the first page; raises httpx.HTTPStatusError when that is refused."""
    _, username, _, password = login.read_text().split()
    with httpx.Client(base_url=url, follow_redirects=True, timeout=30) as browser:
        browser.get("/login/").raise_for_status()
        token = browser.cookies["csrftoken"]
        form = {"username": username, "password": password, "csrfmiddlewaretoken": token}
        page = browser.post("/login/", data=form, headers={"Referer": f"{url}/login/"}).raise_for_status()
        if page.url.path.startswith("/login"):
            raise RuntimeError("the first login was refused")


def report(cloned_s: float, first: Start, second: Start, *, cached: bool) -> int:
    rows = [
        ("git clone", f"{cloned_s:.1f} s", ""),
        ("first make up: ready", f"{first.ready_s:.1f} s", ""),
        ("first make up: signed-in page", f"{first.signed_in_s:.1f} s", f"{FIRST_BAR_S} s"),
        ("second make up: both queues execute", f"{second.ready_s:.1f} s", f"{SECOND_BAR_S} s"),
        ("Ctrl-C to the end", f"{max(first.stop_s, second.stop_s):.1f} s", ""),
        ("processes left", str(first.num_left + second.num_left), "0"),
    ]
    print_table(("what", "measured", "bar"), rows)
    executing = all([*first.queues.values(), *second.queues.values()])
    figures = {
        "clone_to_signed_in_s": round(cloned_s + first.signed_in_s, 1),
        "second_start_s": round(second.ready_s, 1),
        "stop_s": round(max(first.stop_s, second.stop_s), 1),
        "processes_left": first.num_left + second.num_left,
        "queues_execute": executing,
        "pip_cache": cached,
        "load_average_1min": round(os.getloadavg()[0], 1),
    }
    in_time = figures["clone_to_signed_in_s"] <= FIRST_BAR_S and second.ready_s <= SECOND_BAR_S
    return finish("setup_time", figures, passed=in_time and executing and figures["processes_left"] == 0)


if __name__ == "__main__":
    sys.exit(main())
