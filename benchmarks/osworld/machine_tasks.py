"""OSWorld's own tasks on a machine of debian-office: set-up and evaluator of one or two per application.

    make guest-image ARGS=debian-office; make osworld-env LEVEL=office
    python -m benchmarks.osworld.machine_tasks CHECKOUT [--only vlc]

Bar: doing nothing scores 0.0 without an error, and 1.0 where a short command does the task. The files that
tasks download are not ours to have: the stand-ins here have their names, their kinds and nothing else.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import tarfile
import tempfile
import time
import wave
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.finished_runs import load_and_speed
from benchmarks.osworld.compat import REPOSITORY, configure
from benchmarks.report import finish, print_table
from testing.desk_host_process import running_host
from training.contracts.types import Task
from training.tasks.importers import load_tasks

SCREEN = (1280, 720)
"""Smaller than OSWorld's; its set-up steps click at points that lie on it, too."""
COMMAND_LIMIT_S = 600.0
PREFERENCES = "$HOME/.config/google-chrome/Default/Preferences"
PROFILE = ".thunderbird/t5q2a5hp.default-release"


def thunderbird_profile() -> bytes:
    """A profile without accounts, under the name that OSWorld's evaluators read."""
    files = {
        ".thunderbird/profiles.ini": "[Profile0]\nName=default-release\nIsRelative=1\n"
        "Path=t5q2a5hp.default-release\nDefault=1\n\n[General]\nStartWithLastProfile=1\nVersion=2\n",
        f"{PROFILE}/prefs.js": 'user_pref("app.donation.eoy.version.viewed", 99);\n',
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text.encode()), 0o600
            archive.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


def recording() -> bytes:
    """A minute of silence: VLC goes by what is in a file, not by its ending."""
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8000)
        file.writeframes(b"\x80" * 8000 * 60)
    return made.getvalue()


@dataclass(frozen=True)
class Attempt:
    """A task of OSWorld, and how a command does it."""

    task_id: str
    application: str
    ready: str
    """Command that succeeds once the application is up; tried until then."""
    oracle: str = ""
    stand_ins: dict[str, Callable[[], bytes]] = field(default_factory=dict)
    """Ending of a download's path -> its content."""


def ended(program: str) -> str:
    """A command that ends a program and waits for its end."""
    return f"pkill {program}; while pgrep {program}; do sleep 1; done"


DARK = 'user_pref("extensions.activeThemeID", "thunderbird-compact-dark@mozilla.org");'
VLC_STATUS = "curl -sf -u :password http://127.0.0.1:8080/requests/status.xml"
ATTEMPTS = (
    Attempt(
        "chrome.030eeff7-b492-4218-b312-701ec99ee0cc",
        "Chromium",
        f'curl -sf http://127.0.0.1:9222/json/version && test -s "{PREFERENCES}"',
        f"{ended('chrome')}; python3 -c \"import json, os; p=os.path.expandvars('{PREFERENCES}'); "
        "d=json.load(open(p)); d['enable_do_not_track']=True; json.dump(d, open(p, 'w'))\"",
    ),
    Attempt(
        "vlc.8ba5ae7a-5ae5-4eab-9fcc-5dd4fe3abf89",
        "VLC",
        VLC_STATUS,
        "pkill vlc; echo input-record-path=/home/user/Desktop >> ~/.config/vlc/vlcrc",
    ),
    Attempt(
        "vlc.59f21cfb-0120-4326-b255-a5b827b38967",
        "VLC",
        VLC_STATUS,
        f"{ended('vlc')}; setsid vlc --repeat ~/Desktop/*.mp4 >/dev/null 2>&1 & "
        f"until {VLC_STATUS} | grep -q '<state>playing'; do sleep 1; done",
        {".mp4": recording},
    ),
    Attempt(
        "gimp.7b7617bd-57cc-468e-9c91-40c4ec2bcb3d",
        "GIMP",
        "wmctrl -lx | grep -i gimp && test -e ~/.config/GIMP/2.10",
        f"{ended('gimp')}; echo '(undo-levels 100)' >> ~/.config/GIMP/2.10/gimprc",
    ),
    Attempt(
        "thunderbird.94760984-3ff5-41ee-8347-cf1af709fea0",
        "Thunderbird",
        "wmctrl -lx | grep Mail.thunderbird",
        f"{ended('thunderbird')}; echo '{DARK}' >> ~/{PROFILE}/prefs.js",
        {".tar.gz": thunderbird_profile},
    ),
    Attempt(
        "os.f9be0997-4b7c-45c5-b05c-4612b44a6118",
        "settings",
        "true",
        "gsettings set org.gnome.desktop.notifications show-banners false",
    ),
    Attempt("os.13584542-872b-42d8-b299-866967b5c3ef", "GNOME terminal", "true"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", default="", help="tasks whose id holds this; nothing is saved")
    parser.add_argument("--images", type=Path, default=REPOSITORY / "var" / "images")
    parser.add_argument("--templates", type=Path, help="keep the machine's template here, for the next run")
    options = parser.parse_args()
    by_id = {task.task_id: task for task in load_tasks(options.checkout).tasks}
    attempts = [attempt for attempt in ATTEMPTS if options.only in attempt.task_id]
    with tempfile.TemporaryDirectory(prefix="dh-", dir="/tmp") as name:
        folder = Path(name)
        configure(folder)
        places = ["--images", str(options.images)]
        places += ["--templates", str(options.templates or folder / "templates")]
        with running_host(folder / "h", *places, "--warm-limit", "0"):
            rows = attempt_all(attempts, by_id, folder)
    header = ("application", "task", "nothing", "oracle", "prepare s", "error")
    print_table(header, [tuple(row[key.replace(" ", "_")] for key in header) for row in rows])
    is_good = all(row["nothing"] == 0.0 and row["oracle"] in (1.0, None) and not row["error"] for row in rows)
    if options.only:
        return 0 if is_good else 1
    return finish("osworld_machine_tasks", {"tasks": rows, **load_and_speed()}, passed=is_good)


def attempt_all(attempts: list[Attempt], by_id: dict[str, Task], folder: Path) -> list[dict[str, Any]]:
    from workers.desktops.contract import EnvError
    from workers.tasks.errors import TaskError

    environment = open_environment(folder)
    rows = []
    try:
        for attempt in attempts:
            task = by_id[attempt.task_id]
            lay_out(task, attempt, folder / "downloads")
            row = {
                "application": attempt.application,
                "task": attempt.task_id,
                "nothing": None,
                "oracle": None,
            }
            row |= {"error": "", "prepare_s": 0.0}
            try:
                row["prepare_s"], row["nothing"] = play(environment, task, attempt, "")
                if attempt.oracle:
                    row["oracle"] = play(environment, task, attempt, attempt.oracle)[1]
            except (EnvError, TaskError) as error:
                row["error"] = f"{type(error).__name__}: {str(error)[:400]}"
            print(row, f"load {os.getloadavg()[0]:.1f}", flush=True)
            rows.append(row)
    finally:
        environment.close()
    return rows


def open_environment(folder: Path) -> Any:
    from training.contracts.config import DesktopConfig
    from workers.environments.osworld.environment import OsworldEnvironment
    from workers.environments.registry import EnvironmentRequest

    knobs = {"machines": "qemu", "downloads": str(folder / "downloads")}
    machine = {"image": "debian-office"}
    config = DesktopConfig.model_validate({"provider": "osworld", "osworld": knobs, "qemu": machine})
    return OsworldEnvironment(EnvironmentRequest.of(config, SCREEN, holder="benchmark", key=""))


def lay_out(task: Task, attempt: Attempt, downloads: Path) -> None:
    """Stand-ins at the addresses of what the task's set-up fetches."""
    from workers.environments.osworld.child.download_cache import KeptFiles, wanted_files

    for wanted in wanted_files(list(task.config)):
        made = next(make for ending, make in attempt.stand_ins.items() if wanted.given_name.endswith(ending))
        with tempfile.NamedTemporaryFile() as file:
            file.write(made())
            file.flush()
            KeptFiles(downloads).put(wanted.url, Path(file.name))


def play(environment: Any, task: Task, attempt: Attempt, oracle: str) -> tuple[float, float]:
    """(seconds of the set-up, score) of one episode."""
    environment.reset()
    begun = time.monotonic()
    environment.prepare(task)
    prepare_s = round(time.monotonic() - begun, 1)
    environment.observe()
    in_guest(
        environment, f"for i in $(seq 300); do {{ {attempt.ready}; }} >/dev/null && break; sleep 1; done"
    )
    if oracle:
        in_guest(environment, oracle)
    return prepare_s, environment.evaluate(task, None)


def in_guest(environment: Any, command: str) -> None:
    agent = environment._host.desktop.agent
    agent.execute(command, shell=True, timeout_s=COMMAND_LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
