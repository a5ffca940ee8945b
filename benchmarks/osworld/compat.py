"""Does real desktop-env 1.0.2 run its tasks on our desktops? One task per family of its evaluators.

Bar: for every family the oracle scores 1.0 and doing nothing 0.0, on every provider that was asked for;
every metric, getter and setup step of the package is in the table of docs/osworld.md with a verdict.

    make osworld-env LEVEL=office
    python -m benchmarks.osworld.compat [--provider x11 qemu] [--family "json"]
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import django

from benchmarks.osworld.tasks import FAMILIES, SCREEN, Family, content, task_of
from benchmarks.report import RESULTS, finish, percentile, print_table, stamp
from testing.desk_host_process import running_host

REPOSITORY = Path(__file__).resolve().parents[2]
PYTHON = REPOSITORY / ".venv-osworld" / "bin" / "python"


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--provider", nargs="+", default=["x11"], choices=["x11", "qemu"])
    arguments.add_argument("--family", help="only this one; nothing is saved")
    arguments.add_argument("--images", type=Path, default=REPOSITORY / "var" / "images")
    arguments.add_argument(
        "--templates", type=Path, help="keep the machines' template here, for the next run"
    )
    options = arguments.parse_args()
    documents = make_documents()
    families = [family for family in FAMILIES if options.family in (None, family.name)]
    with tempfile.TemporaryDirectory(prefix="dh-", dir="/tmp") as name:
        folder = Path(name)
        configure(folder)
        lay_out_gold(folder / "downloads", families, documents)
        places = ["--images", str(options.images)]
        places += ["--templates", str(options.templates or folder / "templates")]
        with running_host(folder / "h", *places, "--warm-limit", "0"):  # a spare machine would cost a boot
            found = {name: prove_all(name, families, folder, documents) for name in options.provider}
            functions = catalogue()
        left = [path.name for path in (folder / "osworld").iterdir()]
    return report(found, functions, left, is_whole=options.family is None)


def make_documents() -> dict[str, str]:
    command = [str(PYTHON), str(Path(__file__).with_name("documents.py"))]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def configure(folder: Path) -> None:
    """An installation of its own: data, socket, no database."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
    os.environ["DESKHAND_DATA_DIR"] = str(folder)
    os.environ["DESKHAND_DESKHOST_SOCKET"] = str(folder / "h" / "s")
    django.setup()


def lay_out_gold(folder: Path, families: list[Family], documents: dict[str, str]) -> None:
    """Reference files as OSWorld would have downloaded them: there is no network here."""
    for family in families:
        place = folder / task_of(family, documents).task_id
        for name, text in family.gold.items():
            place.mkdir(parents=True, exist_ok=True)
            held = content(text, documents)
            data = held["content"].encode() if "content" in held else base64.b64decode(held["content_base64"])
            (place / f"gold-{name}").write_bytes(data)


def open_environment(provider: str, folder: Path) -> Any:
    from training.contracts.config import DesktopConfig
    from workers.environments.osworld.environment import OsworldEnvironment
    from workers.environments.registry import EnvironmentRequest

    knobs = {"machines": provider, "downloads": str(folder / "downloads"), "accessibility": True}
    config = DesktopConfig.model_validate({"provider": "osworld", "osworld": knobs})
    return OsworldEnvironment(EnvironmentRequest.of(config, SCREEN, holder="benchmark", key=""))


def prove_all(
    provider: str, families: list[Family], folder: Path, documents: dict[str, str]
) -> dict[str, Any]:
    """Family -> scores and times; all on one environment, reset in between."""
    started = time.monotonic()
    environment = open_environment(provider, folder)
    figures: dict[str, Any] = {
        **stamp(),
        "load": os.getloadavg()[0],
        "open_s": time.monotonic() - started,
        "families": {},
    }
    try:
        for family in families:
            figures["families"][family.name] = prove(environment, family, documents)
            row = figures["families"][family.name]
            print(
                f"{provider}  {family.name}: oracle {row['oracle']}, idle {row['idle']}  {row['error']}",
                flush=True,
            )
    finally:
        environment.close()
    return figures


def prove(environment: Any, family: Family, documents: dict[str, str]) -> dict[str, Any]:
    from workers.desktops.contract import EnvError
    from workers.tasks.errors import TaskError

    row: dict[str, Any] = {"func": family.evaluator["func"], "oracle": None, "idle": None, "error": ""}
    times: dict[str, list[float]] = {"prepare_s": [], "act_s": [], "evaluate_s": []}
    try:
        row["idle"] = play(environment, family, documents, times, is_oracle=False)
        row["oracle"] = play(environment, family, documents, times, is_oracle=True)
    except (EnvError, TaskError) as error:
        row["error"] = f"{type(error).__name__}: {str(error)[:600]}"
    return row | {name: percentile(values, 0.5) for name, values in times.items() if values}


def play(
    environment: Any,
    family: Family,
    documents: dict[str, str],
    times: dict[str, list[float]],
    *,
    is_oracle: bool,
) -> float:
    """One episode; doing nothing says at once that it is done."""
    from training.contracts.types import Action
    from workers.tasks.oracles import solution

    task = task_of(family, documents)
    environment.reset()
    timed(times["prepare_s"], lambda: environment.prepare(task))
    environment.observe()
    *actions, last = solution(task)
    if is_oracle:
        for action in actions:
            timed(times["act_s"], lambda action=action: environment.act(action))
            environment.observe()
    else:
        last = Action(kind=last.kind, status="success")
    return timed(times["evaluate_s"], lambda: environment.evaluate(task, last))


def timed(times: list[float], job: Any) -> Any:
    started = time.monotonic()
    result = job()
    times.append(time.monotonic() - started)
    return result


def catalogue() -> Any:
    """What the installed package offers."""
    command = [str(PYTHON), "-m", "benchmarks.osworld.function_catalogue"]
    done = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    return json.loads(done.stdout, object_hook=lambda found: SimpleNamespace(**found))


def report(found: dict[str, Any], functions: Any, left: list[str], *, is_whole: bool) -> int:
    from benchmarks.osworld.function_table import summary, write_page

    names = [(provider, name) for provider, figures in found.items() for name in figures["families"]]
    rows = [(provider, name, found[provider]["families"][name]) for provider, name in names]
    header = ("provider", "family", "oracle", "idle", "prepare s", "act s", "evaluate s")
    cells = [
        (
            p,
            n,
            r["oracle"],
            r["idle"],
            *(f"{r.get(key, 0):.2f}" for key in ("prepare_s", "act_s", "evaluate_s")),
        )
        for p, n, r in rows
    ]
    print_table(header, cells)
    holds = all((row["oracle"], row["idle"]) == (1.0, 0.0) for _, _, row in rows)
    counts = summary(functions)
    print_table(
        ("functions", "of the package", "run here"), [(k, v["all"], v["here"]) for k, v in counts.items()]
    )
    if not is_whole:
        return 0 if holds else 1
    found = earlier() | found
    figures = {"providers": found, "functions": counts, "folders_left": left}
    write_page(functions, found)
    return finish("osworld_compat", figures, passed=holds and not left)


def earlier() -> dict[str, Any]:
    """What the last run found on providers that this one was not asked for; each has its own date."""
    saved = RESULTS / "osworld_compat.json"
    return json.loads(saved.read_text())["figures"]["providers"] if saved.is_file() else {}


if __name__ == "__main__":
    sys.exit(main())
