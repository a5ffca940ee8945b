"""Near clicks as one move: how many turns of siblings share a state then, and are two widgets taken for one?

First desk's start is trained by GRPO on colours and forms, whose siblings point. The groups that this
recorded are counted with three rules of what is the same click: the same pixel, near (the product's,
`training.contracts.screen_state`), and the same widget by the panel's own description, which is the truth.

Bars: near clicks let the share of turns behind a click that began in a shared state rise by 0.1 or more; of
the pairs of siblings whose clicks it joins, at most 1 in 100 hit two widgets.

    python -m benchmarks.training.near_clicks [--seeds 0 1 2] [--steps 24]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from benchmarks.report import finish, print_table
from testing.experiment_runs import follow, launch, settings
from testing.private_installation import Instance
from testing.watch_installation import rows
from training.contracts.screen_state import SURE_PX, Move, move_of, states_by_history

SLOTS = 6
RULES = ("pixel", "near", "widget")
MIN_RISE, MAX_WRONG = 0.1, 0.01
TURNS = """
SELECT t.group_id, t.id, r.frame, r.action, task.spec FROM trajectories_turnrecord r
JOIN trajectories_trajectory t ON t.id = r.trajectory_id JOIN trajectories_group g ON g.id = t.group_id
JOIN experiments_taskrecord task ON task.id = t.task_id
WHERE g.purpose = 'train' AND t.reward IS NOT NULL ORDER BY t.id, r."index"
"""


@dataclass(frozen=True)
class Did:
    """What is counted of a turn."""

    screen: str
    move: Move
    widget: str


Siblings = dict[int, list[Did]]


def recorded(seed: int, steps: int) -> list[Siblings]:
    """The groups of one run."""
    values = {
        "optimiser.seed": seed,
        "algorithm.num_steps": steps,
        "algorithm.groups_per_step": 4,
        "evaluation.num_tasks": 4,
        "evaluation.every": 2 * steps,
        "desktops.num_desktops": SLOTS,
        "tasks.families": ["colour", "form"],
    }
    groups: defaultdict[int, Siblings] = defaultdict(dict)
    with Instance(without=["web"], slots=SLOTS, env_workers=1, env={"CUDA_VISIBLE_DEVICES": ""}) as deskhand:
        number = launch(deskhand, "--preset", "first-desk", *settings(values))
        follow(deskhand, number, 1800.0, poll_s=8.0)
        for group, trajectory, screen, action, spec in rows(deskhand, TURNS):
            done = json.loads(action) if action else None
            did = Did(screen, move_of([done] if done else [], ""), widget_at(json.loads(spec), done or {}))
            groups[group].setdefault(trajectory, []).append(did)
    return list(groups.values())


def widget_at(task: dict[str, Any], action: dict[str, Any]) -> str:
    """What lies where an action points; "" = nothing of the panel, or it does not point."""
    panel = next(step["parameters"]["spec"] for step in task["config"] if step["type"] == "panel")
    if action.get("x") is None:
        return ""
    x, y = action["x"] - panel["x"], action["y"] - panel["y"]
    inside = (
        one["id"]
        for one in panel["widgets"]
        if 0 <= x - one["x"] < one["width"] and 0 <= y - one["y"] < one["height"]
    )
    is_on_panel = 0 <= x < panel["width"] and 0 <= y < panel["height"]
    return next(inside, "panel" if is_on_panel else "")


def states(siblings: Siblings, rule: str) -> dict[int, list[str]]:
    """By one rule: what tells clicks apart goes into the deed."""

    def move(did: Did) -> Move:
        if rule == "near" or not did.move.point:
            return did.move
        return Move(f"{did.move.deed}{did.widget if rule == 'widget' else did.move.point}", ())

    seen = {key: [did.screen for did in row] for key, row in siblings.items()}
    return states_by_history(seen, {key: [move(did) for did in row] for key, row in siblings.items()})


def shared(siblings: Siblings, rule: str) -> Iterator[bool]:
    """Of each turn behind a click: whether another sibling was in its state."""
    found = states(siblings, rule)
    visits = Counter(state for row in found.values() for state in set(row))
    for key, row in siblings.items():
        first = next((place for place, did in enumerate(row) if did.move.point), len(row))
        yield from (visits[state] > 1 for state in found[key][first + 1 :])


def joined(siblings: Siblings) -> Iterator[bool]:
    """Of each pair of clicks on two pixels that near joins: whether they hit two widgets."""
    found = states(siblings, "near")
    for one, other in combinations(siblings, 2):
        for turn in range(1, min(len(siblings[one]), len(siblings[other]))):
            mine, its = siblings[one][turn - 1], siblings[other][turn - 1]
            is_one = found[one][turn - 1 : turn + 1] == found[other][turn - 1 : turn + 1]
            if is_one and mine.move.point != its.move.point:
                yield mine.widget != its.widget


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments.add_argument("--steps", type=int, default=24)
    options = arguments.parse_args()
    load = os.getloadavg()[0]
    groups = [group for seed in options.seeds for group in recorded(seed, options.steps)]
    found = {rule: [is_shared for group in groups for is_shared in shared(group, rule)] for rule in RULES}
    share = {rule: sum(row) / len(row) for rule, row in found.items()}
    pairs = [is_wrong for group in groups for is_wrong in joined(group)]
    print_table(("same click", "turns behind a click in a shared state"), list(share.items()))
    print(f"{sum(pairs)} of {len(pairs)} pairs joined hit two widgets")
    rise, wrong = share["near"] - share["pixel"], sum(pairs) / max(1, len(pairs))
    return finish(
        "near_clicks",
        {
            "seeds": options.seeds,
            "steps": options.steps,
            "groups": len(groups),
            "turns": len(found["near"]),
            "limit_px": SURE_PX,
            "shared": share,
            "pairs": len(pairs),
            "wrong_pairs": sum(pairs),
            "load_before": load,
        },
        passed=rise >= MIN_RISE and wrong <= MAX_WRONG,
    )


if __name__ == "__main__":
    sys.exit(main())
