"""The reward lab over stored turns: read, rewarded anew, compared; and own presets to the last bit.

    python -m benchmarks.web.reward_lab [--turns 100000]

Fills a private database (SQLite, a file), then takes the time of the first look at a slice (turns read, a
shipped preset and an expression by turn computed, effects told) and of an edit of a weight after it.
Bars: read and rewarded anew by one preset <= 5 s; every stored reward exactly that of its own preset.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from functools import partial
from time import perf_counter
from typing import Any

from benchmarks.finished_runs import load_and_speed
from benchmarks.report import finish, print_table
from testing.paths import REPOSITORY

MAX_S = 5.0
TURNS_EACH = 8
GROUP_SIZE = 8
BATCH = 5000
KINDS = ("click", "type", "key", "wait", "scroll", "terminate", None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return measure(options.turns)
    with tempfile.TemporaryDirectory(prefix="deskhand-reward-lab-") as folder:
        environment = os.environ | {"DESKHAND_DATA_DIR": folder}
        environment.pop("DATABASE_URL", None)
        run = partial(subprocess.run, cwd=REPOSITORY, env=environment)
        run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], check=True)
        command = [sys.executable, "-m", "benchmarks.web.reward_lab", "--inside"]
        return run([*command, "--turns", str(options.turns)], check=False).returncode


def measure(num_turns: int) -> int:
    """In a process whose database is the private one."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()
    from training.contracts.config import RewardConfig, RewardPreset
    from training.contracts.config.reward_presets import WeightedTerm
    from webapp.rewards_lab.effects import effects_of
    from webapp.rewards_lab.slices import load_slice, own_parity, reward_slice

    experiment = fill(num_turns)
    key = f"train-{experiment.pk}"
    by_turn = WeightedTerm(term="moved", weight=0.1, expression="changed && kind != 'wait'")
    score = WeightedTerm(term="task_score.v1", weight=1.0)
    tried = {
        "slime-osworld.v1": RewardConfig(preset="slime-osworld.v1"),
        "expression": RewardConfig(preset="x.v1", definition=RewardPreset(terms=(score, by_turn))),
    }
    figures: dict[str, Any] = dict(load_and_speed())
    began = perf_counter()
    stored = load_slice(experiment.team_id, key)
    figures["read_s"] = perf_counter() - began
    for name, rewards in tried.items():
        began = perf_counter()
        new = reward_slice(stored, rewards)
        figures[f"{name}_s"] = perf_counter() - began
        began = perf_counter()
        effects_of(stored, new)
        figures[f"{name}_effects_s"] = perf_counter() - began
    edited = RewardPreset(terms=(score, by_turn.model_copy(update={"weight": 0.2})))
    began = perf_counter()
    again = load_slice(experiment.team_id, key)
    effects_of(again, reward_slice(again, RewardConfig(preset="x.v1", definition=edited)))
    figures["edit_of_a_weight_s"] = perf_counter() - began
    began = perf_counter()
    parity = own_parity(stored)
    figures["parity_s"] = perf_counter() - began
    figures |= {"turns": stored.num_turns, "trajectories": len(stored.trajectories)}
    figures |= {"exact": parity.num_exact, "checked": parity.num_checked}
    slowest = figures["read_s"] + max(figures[f"{name}_s"] for name in tried)
    figures["rescored_s"] = slowest
    rows = [(name, f"{value:.2f}") for name, value in figures.items() if name.endswith("_s")]
    print_table(("what", "s"), rows)
    is_exact = parity.num_exact == parity.num_checked == len(stored.trajectories)
    return finish("reward_lab", figures, passed=slowest <= MAX_S and is_exact)


def fill(num_turns: int) -> Any:
    """An experiment with `num_turns` turns, rewarded as env workers reward them."""
    from testing.factories import make_experiment, make_group, make_task
    from training.contracts.config import ExperimentConfig
    from training.contracts.types import Action, Observation, Turn
    from training.rewards import compute_reward
    from webapp.trajectories.models import Trajectory, TurnRecord

    dice, config = random.Random(7), ExperimentConfig()
    experiment, task = make_experiment(config=config.model_dump(mode="json")), make_task()
    completion = {
        "text": "x" * 120,
        "token_ids": list(range(30)),
        "behaviour_logprobs": [-0.125] * 30,
        "policy_version": 3,
        "finish_reason": "stop",
        "num_prompt_tokens": 900,
    }
    for first in range(0, num_turns // TURNS_EACH, BATCH // TURNS_EACH):
        last = min(num_turns // TURNS_EACH, first + BATCH // TURNS_EACH)
        trajectories, turns = [], []
        group = None
        for number in range(first, last):
            if group is None or number % GROUP_SIZE == 0:
                group = make_group(experiment=experiment, task=task, size=GROUP_SIZE)
            seen = []
            for index in range(TURNS_EACH):
                kind = dice.choice(KINDS)
                action = Action(kind=kind, x=dice.randrange(512), y=dice.randrange(384)) if kind else None
                seen.append(
                    Turn(
                        index=index,
                        observation=Observation(sha256="", width=512, height=384),
                        action=action,
                        screen_changed=dice.random() < 0.7,
                    )
                )
            score = float(dice.random() < 0.3)
            result = compute_reward(seen, score, config.rewards, max_turns=config.desktops.max_turns)
            row = Trajectory(
                team=group.team, experiment=experiment, group=group, task=task, purpose="train",
                source="policy", status="terminated", num_turns=TURNS_EACH, score=score,
                reward=result.reward, ended_at=group.created_at,
            )  # fmt: skip
            trajectories.append(row)
            turns += [(row, turn) for turn in seen]
        Trajectory.objects.bulk_create(trajectories)
        TurnRecord.objects.bulk_create(
            TurnRecord(
                trajectory=row,
                index=turn.index,
                width=512,
                height=384,
                completion=completion,
                action=turn.action and turn.action.model_dump(mode="json", exclude_defaults=True),
                parse_error="" if turn.action else "no action",
                screen_changed=turn.screen_changed,
                observed_at=group.created_at,
            )  # fmt: skip
            for row, turn in turns
        )
    return experiment


if __name__ == "__main__":
    sys.exit(main())
