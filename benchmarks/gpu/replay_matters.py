"""Replay where whole groups fail: smoldesk's `copy`, alone and in a mix, from the demonstrated start.

A private installation (web, queue, env workers, SGLang) lets the oracles demonstrate copy, form and rename,
accepts these demonstrations as a person would, and then trains one experiment for each arm from the same
start. Every end, and the start, is evaluated on held-out tasks of all families by an experiment of its own,
so that the price in the families that were not trained stands beside the gain.

    copy alone  grpo; replay; imitation (the same demonstrations alone, as many updates); sft_grpo
    a mix       copy, form and rename: grpo; replay; and what may keep the others: a smaller, rarer injection
                (capped), imitation beside the group, a KL to the start, entries of the others imitated
    form8       no replay: grpo and rejection fine-tuning where a full score is rare and every group differs,
                from a start that fills each field right now and then (`benchmarks.gpu.partial_start`),
                which the first of them makes; evaluated on form8 alone, before and after

Bar: at the start >= 95 % of the copy groups fail. copy, sampled: GRPO alone <= 2 %, replay >= 70 %, and >= 15
points above imitation. In one arm of the mix copy >= 50 % sampled, and form and rename at most 10 points
below GRPO's of the mix. form8: GRPO ends at >= 80 % of the fields, held out and sampled (rollouts were judged
before: training tasks are nearly full after SFT); rejection's rollouts end <= 5 points above their start.

    python -m benchmarks.gpu.replay_matters --start FOLDER [--preset NAME] [--arms copy/replay]
    [--limit-s 1500] [--tiny]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.finished_runs import FinishedRuns, add_resume
from benchmarks.gpu.partial_start import FORM8, PARTIAL_START, TINY
from benchmarks.report import RESULTS, print_table
from testing.experiment_runs import follow, launch, settings
from testing.private_installation import Instance

START = "start"
"""In `--arms`: the start's own evaluation."""
COPY, MIX, ALL = ["copy"], ["copy", "form", "rename"], ["copy", "form", "rename", "literal"]
REPLAY: dict[str, object] = {
    "replay.enabled": True,
    "replay.injection": "advantage",
    "replay.max_share": 1.0,
    "replay.max_uses": 1000,
}
CAPPED = REPLAY | {"replay.max_advantage": 1.0, "replay.max_family_share": 0.0625}
"""Half of the failed groups, at two fifths of the weight."""
IMITATION: dict[str, object] = {
    "sft.enabled": True,
    "sft.source": "replay",
    "sft.families": [],
    "sft.stop_at_success": 1.0,
    "sft.demonstrations_per_family": 1000,
    "sft.muon_learning_rate": 0,
    "sft.locator_questions": 0,
}
DEMONSTRATED = {"replay.enabled", "sft.source"}
"""What an arm sets that uses demonstrations."""
NO_SAMPLING: dict[str, object] = {"engine.name": "transformers", "evaluation.num_tasks": 0}
"""Where nothing is sampled, the engine that starts soonest."""
ARMS: dict[str, tuple[list[str], dict[str, object]]] = {
    "copy/grpo": (COPY, {}),
    "copy/replay": (COPY, REPLAY),
    "copy/imitation": (COPY, IMITATION | {"algorithm.num_steps": 0}),
    "copy/sft_grpo": (COPY, IMITATION),
    "mix/grpo": (MIX, {}),
    "mix/replay": (MIX, REPLAY),
    "mix/capped": (MIX, CAPPED),
    "mix/beside": (MIX, REPLAY | {"replay.injection": "likelihood", "replay.max_family_share": 0.0625}),
    "mix/capped_kl": (MIX, CAPPED | {"algorithm.kl_coefficient": 0.02}),
    "mix/capped_sft_share": (MIX, CAPPED | {"replay.sft_share": 0.03}),
    f"{FORM8}/grpo": ([FORM8], {}),
    f"{FORM8}/rejection": ([FORM8], {"algorithm.name": "rejection_fine_tuning"}),
}
"""Arm -> families that it trains on, and what is set."""
EIGHT_FIELDS = {name for name, (families, _) in ARMS.items() if FORM8 in families}
SERIES = ("replay/failed_groups", "replay/injected", "rollout/zero_variance_fraction", "loss/entropy")
SERIES += (
    "rollout/reward_mean",
    "optimiser/grad_norm",
    "time/step_s",
    "sft/success",
    *(f"success/{family}" for family in ALL),
)
ACCEPT = """
from django.contrib.auth import get_user_model
from webapp.replay.models import ReplayEntry
from webapp.replay.services.labels import label_entry
person = get_user_model().objects.order_by("pk").first()
for entry in ReplayEntry.objects.filter(trajectory__source="oracle", verdict="inbox"):
    label_entry(entry=entry, user=person, verdict="accepted")
print(ReplayEntry.objects.filter(verdict="accepted").count())
"""
LIMIT_S = 1800.0
HEADER = ("arm", "copy groups failed", "injected", *(f"{name}, greedy / sampled" for name in ALL), "step, s")


def main() -> int:
    options = parse()
    budget = {"steps": options.steps, "groups": options.groups, "tasks": options.tasks, "seed": options.seed}
    budget |= {"start": str(options.start), "preset": options.preset, "set": options.set}
    runs = FinishedRuns(name="replay_matters", budget=budget, resume=options.resume, results=options.results)
    arms = {name: ARMS[name] for name in options.arms if name != START}
    with Instance(slots=options.desktops, env_workers=options.env_workers) as deskhand:
        deskhand.manage("import_tasks", "smoldesk")
        lab = Lab(deskhand, options)
        if not options.start.exists() and set(options.arms) - EIGHT_FIELDS:
            lab.make_start()
        rows = []
        if START in options.arms:
            rows.append(runs.once({"arm": START}, lambda: lab.evaluated(str(options.start))))
        print(f"accepted demonstrations: {lab.demonstrate(arms, options.demonstrations)}", flush=True)
        for name in arms:
            if lab.left() > options.reserve_s:
                rows.append(runs.once({"arm": name}, partial(lab.arm, *arms[name])))
    print_table(HEADER, [row_of(row) for row in rows])
    found = {row["arm"]: row for row in rows}
    missed = missed_by(found)
    print("\n".join(missed) or "the bar is met")
    if options.tiny:
        return 0 if all(row["status"] == "finished" for row in rows) else 1
    return runs.finish(passed=not missed, missed=missed)


def parse() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--start", type=Path, required=True, help="folder of the demonstrated start")
    arguments.add_argument("--model", type=Path, help="published model that a missing START is made from")
    arguments.add_argument("--preset", default="smoldesk", help="whose model, prompt and tasks are used")
    arguments.add_argument("--arms", nargs="+", choices=(START, *ARMS), default=[START, *ARMS])
    arguments.add_argument("--results", type=Path, default=RESULTS / "gpu")
    arguments.add_argument("--steps", type=int, default=50)
    arguments.add_argument("--groups", type=int, default=8, help="per step, of 8 trajectories")
    arguments.add_argument("--tasks", type=int, default=200, help="held-out tasks of an evaluation, in all")
    arguments.add_argument("--demonstrations", type=int, default=240, help="of each family")
    arguments.add_argument("--desktops", type=int, default=64)
    arguments.add_argument("--env-workers", type=int, default=4)
    arguments.add_argument("--learning-rate", type=float, default=3e-5)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--set", nargs="*", default=[], help="further settings of all, as NAME=JSON")
    arguments.add_argument("--limit-s", type=float, default=7200, help="of everything")
    arguments.add_argument("--reserve-s", type=float, default=240, help="of it, for an arm's ends")
    arguments.add_argument("--tiny", action="store_true", help="one step of everything, no bar")
    add_resume(arguments)
    options = arguments.parse_args()
    options.ends_at = time.monotonic() + options.limit_s
    if options.tiny:
        options.steps, options.groups, options.tasks, options.demonstrations = 1, 3, 4, 2
    return options


class Lab:
    """Experiments of one installation that share model, prompt and tasks."""

    def __init__(self, deskhand: Instance, options: argparse.Namespace) -> None:
        self.deskhand = deskhand
        self.options = options
        self.more = [part for one in options.set for part in ("--set", one)]
        self.partial = options.start.with_name(f"{options.start.name}-{FORM8}")
        """Folder of the start of form8's arms."""

    def left(self) -> float:
        return float(self.options.ends_at - time.monotonic())

    def make_start(self) -> None:
        """SFT of a published model on the preset's demonstrations; others may wait for the folder."""
        values: dict[str, object] = {"model.path": str(self.options.model), "algorithm.num_steps": 0}
        described = self.run(values | NO_SAMPLING)
        put_model(described["checkpoints"][-1]["path"], self.options.start)

    def arm(self, families: list[str], changes: Mapping[str, object]) -> dict[str, Any]:
        """Training from the start, and its end evaluated: on form8 where that is trained, else on all."""
        options = self.options
        start = str(self.partial if FORM8 in families else options.start)
        values: dict[str, object] = {
            "model.path": start,
            "tasks.families": families,
            "algorithm.num_steps": options.steps,
            "algorithm.groups_per_step": options.groups,
            "algorithm.max_seconds": self.left() - options.reserve_s,
            "evaluation.num_tasks": options.tasks if FORM8 in families else 0,
            "sft.enabled": False,
            "sft.max_steps": options.steps,
            "sft.evaluate_every": options.steps,
            "sft.batch_size": options.groups,
            "sft.learning_rate": options.learning_rate,
            **changes,
        }
        if FORM8 in families and not self.partial.exists():
            values |= PARTIAL_START | (TINY if options.tiny else {}) | {"model.path": str(options.model)}
        if "algorithm.kl_coefficient" in changes:
            values["algorithm.reference_path"] = start
        described = self.run(values)
        checkpoints = described["checkpoints"]
        ended = f"{checkpoints[-1]['path']}/model" if checkpoints else start
        found = {"families": families, "set": dict(changes), "step_s": seconds_of(described)}
        found |= {"status": described["status"], "curve": described["metrics"]}
        found["alarms"] = sorted(alarm["name"] for alarm in described["alarms"])
        if FORM8 in families:
            starts = [one["path"] for one in checkpoints if one["step"] == 0]
            if starts and not self.partial.exists():
                put_model(starts[0], self.partial)
            found["verdict"] = described["verdict"]["text"]
            found["held_out_before"] = looks(described, "before")
            return found | {"held_out": looks(described, "after")}
        return self.evaluated(ended) | found

    def evaluated(self, model: str) -> dict[str, Any]:
        """Held-out success of a model, per family, greedily and sampled."""
        values = {
            "model.path": model,
            "tasks.families": ALL,
            "evaluation.only": True,
            "evaluation.num_tasks": self.options.tasks,
        }
        described = self.run(values)
        return {"status": described["status"], "held_out": looks(described)}

    def demonstrate(self, arms: Iterable[str], number: int) -> int:
        """By the oracles of the families that the arms train, then accepted; how many the buffer holds."""
        users = [ARMS[name][0] for name in arms if DEMONSTRATED & ARMS[name][1].keys()]
        families = [one for one in MIX if any(one in trained for trained in users)]
        if not families:
            return 0
        values = {
            "tasks.families": families,
            "sft.enabled": True,
            "replay.enabled": True,  # so that the inbox gets them
            "sft.source": "oracle",
            "sft.families": [],
            "sft.demonstrations_per_family": number,
            "sft.max_steps": 1,
            "sft.evaluate_every": 1,
            "algorithm.num_steps": 0,
            **NO_SAMPLING,
        }
        self.run(values)
        return int(self.deskhand.manage("shell", "-c", ACCEPT).strip().splitlines()[-1])

    def run(self, values: Mapping[str, object]) -> dict[str, Any]:
        """One experiment to its end."""
        options = self.options
        shared: dict[str, object] = {
            "model.path": str(options.start),
            "algorithm.group_size": 8,
            "desktops.num_desktops": options.desktops,
            "optimiser.learning_rate": options.learning_rate,
            "optimiser.seed": options.seed,
        }
        arguments = settings(shared | dict(values))
        started = time.monotonic()
        number = launch(self.deskhand, "--preset", options.preset, *arguments, *self.more)
        described = follow(self.deskhand, number, LIMIT_S, *SERIES)
        print(f"experiment {number}: {time.monotonic() - started:.0f} s", flush=True)
        return described


def put_model(checkpoint: str, folder: Path) -> None:
    """A checkpoint's model in `folder`, which is there only once it is whole: others may wait for it."""
    made = folder.with_name(f"{folder.name}.part")
    shutil.copytree(f"{checkpoint}/model", made)
    made.rename(folder)


def looks(described: Mapping[str, Any], name: str = "") -> dict[str, dict[str, Any]]:
    """The evaluations of an experiment, or those of this name, by how they were drawn."""
    found = [one for one in described["evaluations"] if name in ("", one["name"])]
    keys = ("success", "low", "high", "mean_score", "num_tasks", "num_samples", "per_family")
    return {
        "greedy" if one["temperature"] == 0 else "sampled": {key: one[key] for key in keys} for one in found
    }


def seconds_of(described: Mapping[str, Any]) -> float:
    """Mean of its steps; 0 without any."""
    points = [value for _, value in described["metrics"]["time/step_s"]]
    return sum(points) / len(points) if points else 0.0


def share(row: Mapping[str, Any], family: str, kind: str) -> float | None:
    """Held-out success of one family; None where it was not measured."""
    look = row["held_out"].get(kind)
    if look is None or family not in look["per_family"]:
        return None
    won, tried, at_limit = look["per_family"][family]
    return (won - at_limit) / tried if tried else None


def failed_at_start(row: Mapping[str, Any], groups: int, steps: int = 5) -> float | None:
    """Of the groups of its first steps, those that failed as a whole."""
    points = [value for _, value in row["curve"]["replay/failed_groups"]][:steps]
    return sum(points) / (groups * len(points)) if points else None


def missed_by(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What of the bar was missed, in words; an arm that did not run misses its part."""
    missed = [f"{name} did not run" for name in ARMS if name not in found]
    if missed:
        return missed
    copy = {name: share(row, "copy", "sampled") or 0.0 for name, row in found.items()}
    groups = found["copy/grpo"]["budget"]["groups"]
    failed = failed_at_start(found["copy/grpo"], groups) or 0.0
    ahead = copy["copy/replay"] - copy["copy/imitation"]
    checks = {
        f"{failed:.0%} of the copy groups failed at the start": failed >= 0.95,
        f"GRPO alone: copy {copy['copy/grpo']:.0%}": copy["copy/grpo"] <= 0.02,
        f"replay: copy {copy['copy/replay']:.0%}": copy["copy/replay"] >= 0.70,
        f"replay is {ahead:+.0%} above imitation": ahead >= 0.15,
        f"form8: GRPO ends at {(right := filled(found['form8/grpo'])):.0%} of the fields": right >= 0.80,
        "form8: rejection leaves its start": (
            fields(found["form8/rejection"], -1) - fields(found["form8/rejection"], 0) <= 0.05
        ),
        "no arm of the mix keeps both": any(keeps_both(row, found["mix/grpo"]) for row in mixed(found)),
    }
    return [words for words, is_met in checks.items() if not is_met]


def filled(row: Mapping[str, Any]) -> float:
    """Share of form8's fields, held out and sampled, after an arm."""
    return row["held_out"].get("sampled", {}).get("mean_score") or 0.0


def fields(row: Mapping[str, Any], end: int) -> float:
    """Share of form8's fields over five steps at one end of an arm: its reward, which is graded."""
    values = [value for _, value in row["curve"]["rollout/reward_mean"]]
    points = values[-5:] if end else values[:5]
    return sum(points) / len(points) if points else 0.0


def mixed(found: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for name, row in found.items() if name.startswith("mix/") and name != "mix/grpo"]


def keeps_both(row: Mapping[str, Any], plain: Mapping[str, Any]) -> bool:
    """copy is learned, and the other families lose at most 10 points against GRPO alone."""
    lost = [
        (share(plain, family, "sampled") or 0.0) - (share(row, family, "sampled") or 0.0)
        for family in ("form", "rename")
    ]
    return (share(row, "copy", "sampled") or 0.0) >= 0.5 and max(lost) <= 0.10


def row_of(row: Mapping[str, Any]) -> tuple[object, ...]:
    """One table row."""
    curve = row.get("curve") or {}
    injected = sum(value for _, value in curve.get("replay/injected", []))
    failed = failed_at_start(row, row["budget"]["groups"]) if curve else None
    shares = [
        " / ".join("-" if (one := share(row, family, kind)) is None else f"{one:.0%}" for kind in KINDS)
        for family in ALL
    ]
    return (row["arm"], "-" if failed is None else f"{failed:.0%}", injected, *shares, row.get("step_s", ""))


KINDS = ("greedy", "sampled")


if __name__ == "__main__":
    sys.exit(main())
