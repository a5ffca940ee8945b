"""Experiments of a private installation as tests and benchmarks use them: launch, wait, read the curve."""

from __future__ import annotations

import contextlib
import json
import queue
import statistics
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from testing.private_installation import Instance, InstanceFailed
from testing.watch_installation import Recorded, rows

FINAL = {"finished", "failed", "cancelled"}
NOTHING_SCORED = "nothing_scored"
CANCEL_S = 60.0
"""What a cancelled experiment gets to end."""


class Managed(Protocol):
    """An installation whose commands can be run."""

    def manage(self, *arguments: str) -> str: ...


def launch(deskhand: Managed, *arguments: str) -> int:
    """Queue an experiment (arguments of `manage.py launch`); returns its number."""
    return int(json.loads(deskhand.manage("launch", *arguments))["experiment"])


def settings(values: dict[str, object]) -> list[str]:
    """{"sft.enabled": True} as arguments of `manage.py launch`."""
    return [part for name, value in values.items() for part in ("--set", f"{name}={json.dumps(value)}")]


def describe(deskhand: Instance, number: int, *metrics: str) -> dict[str, Any]:
    """What `manage.py experiment` says, with these series under "metrics"."""
    arguments = ["experiment", str(number)]
    return json.loads(deskhand.manage(*arguments, *(("--metrics", *metrics) if metrics else ())))


def status_and_step(deskhand: Instance, number: int) -> tuple[str, int]:
    """Read from the database, to look again and again: a process of `manage.py` takes a core for seconds."""
    (found,) = rows(deskhand, f"select status, step from experiments_experiment where id = {number}")
    return found[0], found[1]


def follow(
    deskhand: Instance,
    number: int,
    limit_s: float,
    *metrics: str,
    poll_s: float = 5.0,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Describe the experiment once it has ended; cancel it when `limit_s` passes first.

    Then "ran_out" is True, and everything is as it stood at that moment. The same as soon as an evaluation
    scored no task at all, be it the last one, or it has paused because nothing is scored: its desktops do not
    work, and the message says why.
    """
    deadline = time.monotonic() + limit_s
    last, ending = "", {"ran_out": True, "status": "ran out of time"}
    # One process looks again and again: a new one for each look would take a third of a core.
    with deskhand.lines("experiment", str(number), "--watch", str(poll_s)) as lines:
        while (found := _next_line(lines, deadline)) is not None:
            described = json.loads(found) if found else describe(deskhand, number)
            line = progress(described)
            if line != last:
                say(f"[{number}] {line}")
                last = line
            if paused_unscored(described) or not all(was_scored(one) for one in described["evaluations"]):
                ending |= {"status": "every trajectory errored", "message": commonest_errors(deskhand)}
                say(f"[{number}] {ending['status']}: {ending['message']}")
                break
            if described["status"] in FINAL:
                return describe(deskhand, number, *metrics) | {"ran_out": False}
            if not found:
                raise InstanceFailed(f"manage.py experiment {number} --watch ended before the experiment")
    snapshot = describe(deskhand, number, *metrics)
    with contextlib.suppress(InstanceFailed):  # it may have ended by itself since that look
        deskhand.manage("experiment", str(number), "cancel")
    ends = time.monotonic() + CANCEL_S
    while time.monotonic() < ends and describe(deskhand, number)["status"] not in FINAL:
        time.sleep(poll_s / 2)
    return snapshot | ending


def _next_line(lines: queue.Queue[str], deadline: float) -> str | None:
    """None at the deadline."""
    try:
        return lines.get(timeout=max(0.0, deadline - time.monotonic()))
    except queue.Empty:
        return None


def progress(described: dict[str, Any]) -> str:
    """Status, the stage that runs, and the newest evaluation in one line."""
    stages = [stage for stage in described["stages"] if stage["status"] == "running"]
    stage = f" {stages[-1]['name']} {stages[-1]['done']}/{stages[-1]['total']}" if stages else ""
    found = described["evaluations"]
    newest = [item for item in found if all(item[key] == found[-1][key] for key in ("name", "step"))]
    shares = " and ".join(
        f"{item['success']:.0%} {'greedy' if item['temperature'] == 0 else 'sampled'}" for item in newest
    )
    success = f", {found[-1]['name']} {shares}" if found else ""
    why = described["waiting_because"] or described["message"]
    return f"{described['status']}{stage}{success} {why}".strip()


ERRORS = """
from collections import Counter
from webapp.trajectories.models import Trajectory
rows = Trajectory.objects.filter(status="errored").values_list("error", flat=True)
print(Counter(rows).most_common(3))
"""


def was_scored(found: dict[str, Any] | None) -> bool:
    """Whether an evaluation measured anything: with every trajectory errored it says 0 % of 0 tasks."""
    return bool(found and found["num_tasks"])


def paused_unscored(described: dict[str, Any]) -> bool:
    """Whether it waits for a person because none of its last trajectories was scored."""
    reasons = {incident["kind"] for incident in described["incidents"]}
    return described["status"] == "paused" and NOTHING_SCORED in reasons


def commonest_errors(deskhand: Instance) -> str:
    """The commonest messages of trajectories that errored, for a run without a result."""
    return deskhand.manage("shell", "-c", ERRORS).strip().splitlines()[-1]


def evaluation(described: dict[str, Any], name: str, *, greedy: bool = False) -> dict[str, Any] | None:
    """The last evaluation of this name, sampled or greedy: success, its interval, tasks."""
    found = [
        item
        for item in described["evaluations"]
        if item["name"] == name and (item["temperature"] == 0) == greedy
    ]
    keys = ("step", "temperature", "samples_per_task", "success", "low", "high", "num_tasks", "num_samples")
    keys += ("num_success", "per_family", "num_solved_at_limit", "solved", "solved_low", "solved_high")
    keys += ("truncated_share", "unparsable_share")
    return {key: found[-1][key] for key in keys} if found else None


def curve_of(described: dict[str, Any], *, greedy: bool = False) -> list[tuple[int, float]]:
    """(step, success) of all its evaluations, sampled or greedy, in order of steps."""
    found = (item for item in described["evaluations"] if (item["temperature"] == 0) == greedy)
    return sorted((item["step"], item["success"]) for item in found)


OUTCOMES = """
SELECT e.name, e.step, e.temperature, t.results FROM experiments_evaluation e
JOIN experiments_evaluationtasks t ON t.evaluation_id = e.id WHERE e.experiment_id = {number} ORDER BY e.id
"""
SPENT = """
SELECT t.spent_ms FROM trajectories_turnrecord t JOIN trajectories_trajectory j ON j.id = t.trajectory_id
WHERE j.experiment_id = {number} AND t.spent_ms IS NOT NULL
"""


def outcomes(deskhand: Recorded, number: int) -> list[tuple[str, int, float, dict[str, list[int]]]]:
    """(name, step, temperature, task -> solved, draws, group, solved at a limit) of all its evaluations."""
    found = rows(deskhand, OUTCOMES.format(number=number))
    return [(name, step, temperature, json.loads(results)) for name, step, temperature, results in found]


def turn_parts(deskhand: Recorded, number: int) -> dict[str, float]:
    """Part of a turn -> mean milliseconds over all turns of its policy."""
    parts: dict[str, list[float]] = {}
    for (spent_ms,) in rows(deskhand, SPENT.format(number=number)):
        for part, value in json.loads(spent_ms).items():
            parts.setdefault(part, []).append(value)
    return {part: statistics.fmean(values) for part, values in parts.items()}


def seconds(start: str | None, end: str | None) -> float | None:
    """Between two times as `manage.py experiment` prints them."""
    if not start or not end:
        return None
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def stage_seconds(described: dict[str, Any]) -> dict[str, float]:
    """Stage -> seconds that it took; stages that did not end are left out."""
    spans = {stage["name"]: seconds(stage["started_at"], stage["ended_at"]) for stage in described["stages"]}
    return {name: span for name, span in spans.items() if span is not None}
