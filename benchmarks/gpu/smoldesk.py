"""smoldesk: does a published language model learn desktop tasks by GRPO, on real weights and real desktops?

Private installations (real Redis, web, workers, X11 desktops) train SmolLM2-135M on the task set smoldesk.
For each seed of the SFT stage there are three starts: `demonstrated` (the recipe of the preset),
`uninformative` (the right grammar, a target drawn at random) and `random` (the same demonstrations on random
weights of the same shape). Arms of the first: GRPO, rejection fine-tuning, and shuffled rewards at a rate and
KL that keep it near its start; of the others GRPO. Everything is evaluated on held-out tasks greedily and
sampled at both ends (a start once: its first arm's evaluation serves the others, too); outcomes by task are
kept, and the file is written anew after every evaluation.

Bar, in each seed: form and rename >= 30 points up, greedy and sampled; mixed >= 15; shuffled within 5 points
of its start; press >= 70 % greedily from the uninformative start; pass@8 of a family >= 10 points up.

    python -m benchmarks.gpu.smoldesk --model FOLDER [--starts demonstrated] [--arms grpo shuffled]
    [--seeds 0 1 2] [--engine sglang|transformers] [--side-by-side 3] [--desktops 22] [--limit-s 2400]
    [--tiny]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.gpu.smoldesk_figures import looks_of, missed, table
from benchmarks.report import RESULTS, commit, machine, print_table, write_whole
from benchmarks.training.side_by_side import side_by_side
from testing.experiment_runs import follow, launch, outcomes, settings, turn_parts
from testing.private_installation import Instance, InstanceFailed
from training.content.task_sets.smoldesk import DEMONSTRATED

ARMS = {
    "demonstrated": ("grpo", "shuffled", "rejection"),
    "uninformative": ("grpo",),
    "random": ("grpo",),
}
FAMILIES = {
    "demonstrated": ["form", "rename", "toggle", "pick", "literal", "mixed", "editor"],
    "random": ["form", "rename", "toggle", "pick", "literal", "mixed", "editor"],
    "uninformative": ["press"],
}
CURVES = (
    *("rollout/success", "rollout/solved", "rollout/parse_error_rate", "rollout/turns_mean", "loss/entropy"),
    *(
        "loss/kl",
        "optimiser/grad_norm",
        "time/step_s",
        "time/rollout_s",
        "time/train_s",
        "policy/logprob_gap",
    ),
    *(f"success/{family}" for family in ("form", "rename", "toggle", "pick", "press")),
)


class Record:
    """The result file: every experiment as it stands, whole after each change."""

    def __init__(self, path: Path, options: argparse.Namespace) -> None:
        self.path = path
        self.lock = threading.Lock()
        given = {name: str(value) for name, value in vars(options).items()}
        self.figures: dict[str, Any] = {
            "options": given,
            "machine": machine(),
            "commit": commit(),
            "runs": {},
        }

    def put(self, key: str, run: dict[str, Any]) -> None:
        with self.lock:
            self.figures["runs"][key] = run
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, self.figures)

    @property
    def runs(self) -> dict[str, Any]:
        return self.figures["runs"]


class Stage:
    """One start and its arms, in an installation of their own."""

    def __init__(self, key: dict[str, Any], options: argparse.Namespace, record: Record, cores: int) -> None:
        self.start, self.seed = str(key["start"]), int(key["seed"])
        self.options, self.record = options, record
        env = {"DESKHAND_TORCH_THREADS": str(max(cores // 2, 2))}
        if options.engine == "transformers" and options.cpu:
            env["CUDA_VISIBLE_DEVICES"] = ""
        workers = options.env_workers or max(1, cores // 3)
        self.deskhand = Instance(slots=options.desktops, env_workers=workers, env=env)
        self.start_looks: list[dict[str, Any]] = []
        """By the first arm."""

    def run(self) -> dict[str, Any]:
        with self.deskhand:
            self.deskhand.manage("import_tasks", self.options.task_set)
            try:
                found = self._experiment("start", self._start())
            except (InstanceFailed, subprocess.SubprocessError) as error:
                return {"status": "failed", "message": str(error)[-2000:]}
            if found["status"] != "finished":
                return found
            for arm in ARMS[self.start]:
                if arm in self.options.arms and self._left() > self.options.reserve_s:
                    found = self._experiment(arm, self._arm(arm, f"experiment:{found['start']}@latest"))
        return found

    def _left(self) -> float:
        return self.options.ends_at - time.monotonic()

    def _experiment(self, arm: str, values: dict[str, object]) -> dict[str, Any]:
        """Launch, follow to its end or the time's, and keep what it showed after every evaluation."""
        key = f"{self.start}/{arm}/seed {self.seed}"
        began = time.monotonic()
        number = launch(self.deskhand, "--preset", "smoldesk", *settings(values))
        self.first = number if arm == "start" else self.first
        seen = 0

        def keep(described: dict[str, Any]) -> dict[str, Any]:
            run = self._run(described, number) | {"seconds": time.monotonic() - began, "values": values}
            self.record.put(key, run)
            return run

        def say(line: str) -> None:
            nonlocal seen
            print(f"{time.monotonic() - began:6.0f} s {key} {line}", flush=True)
            described = json.loads(self.deskhand.manage("experiment", str(number), "--metrics", *CURVES))
            if len(described["evaluations"]) != seen:
                seen = len(described["evaluations"])
                keep(described)

        run = keep(follow(self.deskhand, number, max(1.0, self._left()), *CURVES, say=say, poll_s=10.0))
        self.start_looks = self.start_looks or [look for look in run["looks"] if look["step"] == 0]
        return run

    def _run(self, described: dict[str, Any], number: int) -> dict[str, Any]:
        return {
            "status": described["status"],
            "message": described["message"],
            "start": self.first,
            "step": described["step"],
            "alarms": [alarm["name"] for alarm in described["alarms"]],
            "curves": described["metrics"],
            "stages": described["stages"],
            "looks": looks_of(outcomes(self.deskhand, number)) + self.start_looks,
            "turn_ms": turn_parts(self.deskhand, number),
        }

    def _shared(self) -> dict[str, object]:
        options = self.options
        values: dict[str, object] = {
            "tasks.task_set": options.task_set,
            "tasks.families": options.families or FAMILIES[self.start],
            "desktops.num_desktops": options.desktops,
            "evaluation.num_tasks": options.tasks,
            "evaluation.samples_per_task": options.draws,
            "optimiser.seed": self.seed,
            "engine.name": options.engine,
            "checkpoints.keep_last": 2,
        }
        if options.engine == "sglang":
            values |= {"engine.memory_fraction": options.memory_fraction, "model.dtype": options.dtype}
            values["engine.attention_backend"] = "triton"
            values["engine.max_running"] = options.desktops
            if options.engine_arguments:
                values["engine.extra_arguments"] = options.engine_arguments.split()
        if options.max_turns:
            values["desktops.max_turns"] = options.max_turns
        return values

    def _start(self) -> dict[str, object]:
        model = self._random_weights() if self.start == "random" else self.options.model.resolve()
        family = "uninformative" if self.start == "uninformative" else "demonstrated"
        values: dict[str, object] = {
            "model.path": str(model),
            "sft.families": [family],
            "sft.demonstrations_per_family": self.options.demonstrations,
            "sft.max_steps": self.options.sft_steps,
            "sft.evaluate_every": self.options.sft_steps,
            "algorithm.num_steps": 0,
            "evaluation.num_tasks": 0,
            "engine.name": "transformers",  # nothing is sampled: the one that starts soonest
        }
        return self._shared() | values

    def _arm(self, arm: str, model: str) -> dict[str, object]:
        options = self.options
        # The engine's start and the evaluations to come have to fit, too.
        reserve_s = options.reserve_s * (2 / 3 if self.start_looks else 1)
        values: dict[str, object] = {
            "model.path": model,
            "sft.enabled": False,
            "algorithm.num_steps": options.steps,
            "algorithm.groups_per_step": options.groups,
            "algorithm.group_size": options.group_size,
            "optimiser.learning_rate": options.learning_rate,
            "evaluation.every": 0,
            "evaluation.before": not self.start_looks,
            "algorithm.max_seconds": max(60.0, self._left() - reserve_s),
        }
        if arm == "rejection":
            values["algorithm.name"] = "rejection_fine_tuning"
        if arm == "shuffled":
            values |= {
                "algorithm.reward_control": "shuffled",
                "optimiser.learning_rate": options.control_rate,
            }
            if options.control_kl:
                values |= {"algorithm.kl_coefficient": options.control_kl, "algorithm.reference_path": model}
        return self._shared() | values

    def _random_weights(self) -> Path:
        """A model of the same shape and tokenizer that knows nothing."""
        folder = self.deskhand.folder / "random-weights"
        code = (
            "import sys, torch, transformers as t; torch.manual_seed(int(sys.argv[3])); "
            "c = t.AutoConfig.from_pretrained(sys.argv[1]); "
            "t.AutoModelForCausalLM.from_config(c).save_pretrained(sys.argv[2]); "
            "t.AutoTokenizer.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[2])"
        )
        arguments = [str(self.options.model.resolve()), str(folder), str(self.seed)]
        subprocess.run([sys.executable, "-c", code, *arguments], check=True)
        return folder


def main() -> int:
    options = parse()
    options.ends_at = time.monotonic() + options.limit_s
    record = Record(options.out, options)
    keys = [{"start": start, "seed": seed} for start in options.starts for seed in options.seeds]

    def measure(key: dict[str, Any], cores: int) -> dict[str, Any]:
        if time.monotonic() > options.ends_at:
            return {"status": "no time was left"}
        return Stage(key, options, record, cores).run()

    ended = side_by_side(keys, measure, options.side_by_side)
    for key, found in zip(keys, ended, strict=True):
        print(key, found["status"], found.get("message", ""))
    print_table(*table(record.runs))
    missing = missed(record.runs, options.starts, options.seeds)
    record.figures |= {"missed": missing, "passed": not missing}
    write_whole(record.path, record.figures)
    print("\n".join(missing) or "the bar is met")
    return 0 if options.tiny or not missing else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--model", type=Path, required=True, help="folder of SmolLM2-135M-Instruct (`make model-smollm2`)")
    add("--starts", nargs="+", choices=tuple(ARMS), default=list(ARMS))
    add("--families", nargs="+", default=[], help="instead of all of the start")
    add("--arms", nargs="+", default=["grpo", "rejection", "shuffled"])
    add("--seeds", type=int, nargs="+", default=[0, 1, 2])
    add("--engine", choices=("sglang", "transformers"), default="sglang")
    add("--cpu", action="store_true", help="with transformers: leave GPUs alone")
    add(
        "--dtype",
        choices=("float32", "bfloat16"),
        default="bfloat16",
        help="of model and engine, with sglang",
    )
    add("--memory-fraction", type=float, default=0.3, help="of what is free, for each engine")
    add("--engine-arguments", default="", help='of sglang instead of the preset\'s: "--name=value --name"')
    add("--side-by-side", type=int, default=3, help="installations at once, on shares of the cores")
    add("--desktops", type=int, default=22, help="of each installation")
    add("--env-workers", type=int, default=0, help="of each; 0 = one for three cores")
    add("--steps", type=int, default=40)
    add("--groups", type=int, default=16)
    add("--group-size", type=int, default=8)
    add("--learning-rate", type=float, default=3e-5)
    add("--control-rate", type=float, default=3e-6)
    add("--control-kl", type=float, default=0.1)
    add("--demonstrations", type=int, default=sum(DEMONSTRATED.values()))
    add("--task-set", default="smoldesk", help="smoldesk-choice: to choose settings, held-out tasks unseen")
    add("--sft-steps", type=int, default=130)
    add("--tasks", type=int, default=120, help="held-out tasks of an evaluation, families in turn")
    add("--draws", type=int, default=8, help="sampled trajectories of each")
    add("--max-turns", type=int, default=0, help="0 = as the preset and the tasks say")
    add("--limit-s", type=float, default=2400, help="of everything")
    add("--reserve-s", type=float, default=400, help="of it, for an arm's start and evaluations")
    add("--out", type=Path, default=RESULTS / "gpu" / "smoldesk.json")
    add("--tiny", action="store_true", help="the smallest size of everything, no bar")
    options = parser.parse_args()
    if options.tiny:
        sizes = {"steps": 1, "groups": 1, "group_size": 2, "demonstrations": 2, "sft_steps": 2, "tasks": 2}
        sizes |= {"draws": 2, "max_turns": 2, "desktops": 2, "env_workers": 1}
        vars(options).update(sizes)
    return options


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    sys.exit(main())
