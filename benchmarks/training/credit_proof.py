"""Measured credit by turn against the true value: is the planted wrong turn found, and is garbage paid for?

The product's own way, on First desk's real desktops with its shipped start: queue -> env workers -> policy
server, `manage.py measure_credit`, and the values that the viewer shows. The first turns of a trajectory are
written for the policy (`planted_policy`): right ones, then a wrong one; then the policy goes on by itself.

    menu    the right row is reached and left again; there the policy solves nearly every task
    colour  a wrong button is clicked at once; the policy finds the right one half of the time, so that the
            turn cannot lose more than half, and only the value's error is judged
    babble  the right button, then garbage until the limit, paid as `first-desk.v1` pays (the state counts)

Every state of a trajectory is measured by `--size` continuations that do its turns again on another desktop.
True values come without branches: `--rollouts` ordinary trajectories for which the same turns are written.

Bars: mean error of the value <= 0.1 and rank correlation >= 0.9 over the states with a true value; the
planted turn is the first decisive mistake in >= 90 % of the menus; no garbage turn, which plain GRPO pays,
has a measured change above 0 by its 95 % interval, and their mean is at most 0.02.

    python -m benchmarks.training.credit_proof [--menus 10] [--colours 2] [--babbles 3] [--size 16]
    [--rollouts 200] [--true-menus 2] [--true-colours 1]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from statistics import correlation, fmean
from typing import Any

from benchmarks.report import finish, print_table
from benchmarks.training.planted_policy import PlantedPolicy
from benchmarks.training.planted_turns import (
    Plant,
    Stage,
    colour_plant,
    config_with,
    menu_plant,
    queue_babble,
    queue_plants,
    queue_true,
    records,
)
from testing.paths import REPOSITORY
from testing.private_installation import Instance
from training.contracts.types import Purpose, Source

START = REPOSITORY / "training" / "checkpoints_shipped" / "first-desk"
MAX_ERROR, MIN_RANK, MIN_NAMED, MAX_GARBAGE = 0.1, 0.9, 0.9, 0.02


def measure(plants: Sequence[Plant], size: int) -> None:
    """`manage.py measure_credit` for every turn of every plant."""
    from django.core.management import call_command

    for plant in plants:
        turns = range(1, plant.trajectory.num_turns + 1)
        call_command("measure_credit", plant.trajectory.pk, turns=list(turns), size=size, seconds=1e6)


def row_of(plant: Plant) -> dict[str, Any]:
    """What the product says of it, beside the truth."""
    from webapp.trajectories.queries.turn_credit import credit_of, measured_turns, mistake_of

    trajectory = plant.trajectory
    stretches = credit_of(trajectory.group)[trajectory.pk]
    values = measured_turns([trajectory.pk]).get(trajectory.pk, {})
    return {
        "kind": plant.kind,
        "task": plant.record.task_id,
        "turns": trajectory.num_turns,
        "reward": trajectory.reward,
        "planted_turn": plant.turn + 1,
        "named_turn": None if (named := mistake_of(stretches)) is None else named + 1,
        "is_named": named == plant.turn,
        "measured": {state: {"value": found.mean, "num": found.num} for state, found in values.items()},
        "true": {state: {"value": fmean(found), "num": len(found)} for state, found in plant.true.items()},
        "changes": [
            {
                "first": one.first + 1,
                "last": one.last + 1,
                "change": one.change,
                "low": one.low,
                "high": one.high,
            }
            for one in stretches
        ],
    }


def garbage_credit(plants: Sequence[Plant]) -> list[dict[str, Any]]:
    """Advantages of garbage turns by the trainer's own code: by trajectory and by branches."""
    from training.rollouts.branch_credit import with_branches
    from training.rollouts.group_samples import advantages_of, true_rewards
    from webapp.trajectories.models import Group
    from webapp.trajectories.row_to_types import group_of

    found, config = [], config_with("first-desk.v1")
    for plant in plants:
        group = group_of(plant.trajectory.group)
        branches = [group_of(one) for one in Group.objects.filter(parent=plant.trajectory)]
        (whole,) = with_branches([group], branches)
        by: dict[str, list[float]] = {}
        for credit in ("trajectory", "branches"):
            algorithm = config.algorithm.model_copy(update={"credit": credit, "least_visits": 128})
            of = config.model_copy(update={"algorithm": algorithm})
            result = advantages_of(whole, true_rewards(whole), of)
            assert result is not None
            key = plant.trajectory.pk
            turns = result.turns.get(key) or (result.advantages[key],) * plant.trajectory.num_turns
            by[credit] = list(turns[plant.turn :])
        found.append(by)
    return found


def judge(rows: list[dict[str, Any]], garbage: list[dict[str, list[float]]]) -> dict[str, Any]:
    """The figures of the bars."""
    pairs = [
        (row["measured"][state]["value"], true["value"])
        for row in rows
        for state, true in row["true"].items()
        if state in row["measured"]
    ]
    menus = [row for row in rows if row["kind"] == "menu"]
    babbles = [row for row in rows if row["kind"] == "babble"]
    errors = [abs(measured - true) for measured, true in pairs]
    spent = [change for row in babbles for change in row["changes"] if change["first"] >= row["planted_turn"]]
    return {
        "states": len(pairs),
        "error": fmean(errors),
        "worst_error": max(errors),
        "rank": correlation(*(ranks(side) for side in zip(*pairs, strict=True))),
        "menus": len(menus),
        "named": sum(row["is_named"] for row in menus),
        "colours_named": sum(row["is_named"] for row in rows if row["kind"] == "colour"),
        "garbage_turns": len(spent),
        "garbage_change": fmean(change["change"] for change in spent),
        "garbage_paid": sum(change["low"] > 0 for change in spent),
        "garbage_by_trajectory": fmean(value for by in garbage for value in by["trajectory"]),
        "garbage_by_branches": fmean(value for by in garbage for value in by["branches"]),
    }


def ranks(values: Sequence[float]) -> list[float]:
    """Equal values share their mean rank."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]


def prove(stage: Stage, options: argparse.Namespace) -> dict[str, Any]:
    started = time.monotonic()
    menus = [menu_plant(stage, record) for record in records("menu", options.menus)]
    colours = [colour_plant(stage, record) for record in records("colour", options.colours)]
    queue_plants(stage, [*menus, *colours])
    babbles = [
        one for record in records("colour", options.babbles) for one in queue_babble(stage, record)[:1]
    ]
    plants = [*menus, *colours, *babbles]
    stage.wait("planted trajectories")
    plants = [plant for plant in plants if has_its_turns(plant)]
    measure(plants, options.size)
    stage.wait("measures")
    most = {"menu": options.true_menus, "colour": options.true_colours, "babble": 0}
    with_truth = [one for kind, count in most.items() for one in of_kind(plants, kind)[:count]]
    groups = [(plant, queue_true(stage, plant, options.rollouts)) for plant in with_truth]
    stage.wait("true values")
    for plant, by_state in groups:
        plant.true = {state: scored(group) for state, group in by_state.items()}
    rows = [row_of(plant) for plant in plants]
    garbage = garbage_credit([plant for plant in plants if plant.kind == "babble"])
    return judge(rows, garbage) | counts() | {
        "size": options.size,
        "rollouts": options.rollouts,
        "seconds": time.monotonic() - started,
        "load": os.getloadavg()[0],
        "rows": rows,
        "garbage": garbage,
    }  # fmt: skip


def of_kind(plants: Sequence[Plant], kind: str) -> list[Plant]:
    return [plant for plant in plants if plant.kind == kind]


def has_its_turns(plant: Plant) -> bool:
    """False, and said, when its desktop or policy broke."""
    plant.trajectory.refresh_from_db()
    if plant.trajectory.reward is None:
        print(f"{plant.kind} {plant.record.task_id}: {plant.trajectory.error}", flush=True)
    return plant.trajectory.reward is not None


def scored(group: Any) -> list[float]:
    return [float(one) for one in group.trajectories.values_list("reward", flat=True) if one is not None]


def counts() -> dict[str, Any]:
    from webapp.trajectories.models import Trajectory

    branches = Trajectory.objects.filter(purpose=Purpose.BRANCH, source=Source.POLICY)
    return {
        "trajectories": Trajectory.objects.count(),
        "continuations": branches.count(),
        "not_reproduced": branches.filter(error_kind="not_reproduced").count(),
        "errored": Trajectory.objects.filter(status="errored").count(),
    }


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, count in (("menus", 10), ("colours", 2), ("babbles", 3), ("size", 16), ("rollouts", 200)):
        arguments.add_argument(f"--{name}", type=int, default=count)
    arguments.add_argument("--true-menus", type=int, default=2)
    arguments.add_argument("--true-colours", type=int, default=1)
    options = arguments.parse_args()
    with Instance(without=["gpu", "web"], env={"CUDA_VISIBLE_DEVICES": ""}, start_timeout_s=900) as deskhand:
        os.environ.update(deskhand.environment)
        import django
        import torch

        django.setup()
        torch.set_num_threads(1)
        with PlantedPolicy(START, config_with("first-desk.v2")) as policy:
            found = prove(Stage(policy), options)
    return report(found)


def report(found: dict[str, Any]) -> int:
    named = found["named"] / found["menus"]
    rows = [
        ("states with a true value", found["states"], ""),
        ("mean error of the measured value", found["error"], f"<= {MAX_ERROR}"),
        ("... worst", found["worst_error"], ""),
        ("rank correlation", found["rank"], f">= {MIN_RANK}"),
        (f"planted turn named, of {found['menus']} menus", named, f">= {MIN_NAMED}"),
        ("... of the colours, where at most half can be lost", found["colours_named"], ""),
        (
            f"mean change by {found['garbage_turns']} garbage turns",
            found["garbage_change"],
            f"<= {MAX_GARBAGE}",
        ),
        ("... above 0 by the interval", found["garbage_paid"], "= 0"),
        ("garbage's advantage, by trajectory", found["garbage_by_trajectory"], ""),
        ("... by branches", found["garbage_by_branches"], ""),
        ("continuations that met another screen", found["not_reproduced"], ""),
        ("seconds", found["seconds"], ""),
    ]
    print_table(("figure", "measured", "bar"), [(name, round(value, 3), bar) for name, value, bar in rows])
    passed = (
        found["error"] <= MAX_ERROR
        and found["rank"] >= MIN_RANK
        and named >= MIN_NAMED
        and found["garbage_change"] <= MAX_GARBAGE
        and not found["garbage_paid"]
    )
    return finish("credit_proof", found, passed=passed)


if __name__ == "__main__":
    sys.exit(main())
