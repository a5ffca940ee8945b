"""Bars: every family computes what transformers computes, and leaves as it came.

    python -m benchmarks.training.families

Tiny random models of each family, in fp32 on the CPU:
- Loss and gradient of one update, padded, packed (half of the blocks recomputed) and of adapters, on one and
  two processes, against plain transformers and the formulas in fp64: within 1e-6.
- The trainer scores what the engine sampled over two turns: within 1e-5 nats.
- Prompts equal the tokenizer's own chat template, token by token.
- An export loads by transformers' own classes with every weight; a checkpoint goes on as if nothing was.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.report import finish, print_table
from testing.training.family_probe import LAYOUTS, Family, family_config, sampled_family
from testing.training.gathered_state import full_state
from testing.training.parallel_probe import launch
from testing.training.recorded_samples import toy_learner
from testing.training.tiny_families import NAMES
from testing.training.update_probe import by_trainer
from training.checkpoints.export import export_checkpoint
from training.checkpoints.store import CheckpointStore, ExperimentState
from training.contracts.trainer_state import LearningStage
from training.distributed.world import World, start_world, stop_world
from training.model.families.registry import family_at
from training.render.history_window import SeenTurn

BAR = 1e-6
ENGINE_BAR = 1e-5
"""Nats."""


def template_equals(family: Family) -> bool:
    """Whether a conversation of two turns has the tokens that the tokenizer's own template gives it."""
    renderer, answer = family.renderer, '{"action":"wait"}'
    turns = [
        SeenTurn(text="Press red", completion=tuple(renderer.completion_ids(answer))),
        SeenTurn(text="changed", completion=()),
    ]
    ours = renderer.context(turns).token_ids
    words = renderer.decode(ours)
    rows = [
        {"role": "user", "content": words.split("user\n")[1].split("<|im_end|>")[0]},
        {"role": "assistant", "content": answer},
        {"role": "user", "content": words.split("user\n")[2].split("<|im_end|>")[0]},
    ]
    theirs = renderer.tokenizer.apply_chat_template(rows, tokenize=False, add_generation_prompt=True)
    return bool(ours == renderer.tokenizer.encode(theirs, add_special_tokens=False))


def engine_gap(family: Family, world: World) -> float:
    """Max |engine - trainer|, nats."""
    config = family_config(family.model, sampling={"temperature": 1.0})
    learner = toy_learner(config, world, family.renderer, family.folder / "frames")
    gaps = [
        abs(ours - theirs)
        for sample, scores in zip(family.samples, learner.token_logprobs(family.samples), strict=True)
        for ours, theirs in zip(scores, _recorded(sample), strict=True)
    ]
    return max(gaps)


def _recorded(sample: Any) -> list[float]:
    return [value for value, bit in zip(sample.behaviour_logprobs, sample.loss_mask, strict=True) if bit]


def export_and_resume(family: Family, world: World, folder: Path) -> tuple[bool, bool]:
    """Whether the export loads as it was trained, and whether a resumed step is the undisturbed one."""
    config = family_config(family.model, optimiser={"learning_rate": 1e-2, "packing": True})
    first, second = (toy_learner(config, world, family.renderer, family.folder / "frames") for _ in range(2))
    first.policy_step(family.samples, 0)
    store = CheckpointStore(folder / "checkpoints", keep_last=1)
    saved = store.save(first, ExperimentState(stage=LearningStage.GRPO), family.model)
    output = export_checkpoint(saved, folder / "export", dtype="float32")
    loaded, info = family_at(output).auto_class.from_pretrained(output, output_loading_info=True)
    trained = full_state(first.policy.model)
    loads = not any(info.values()) and all(
        torch.equal(weight, trained[name]) for name, weight in loaded.named_parameters()
    )
    store.load(saved, second)
    losses = {learner.policy_step(family.samples, 1).loss for learner in (first, second)}
    after = full_state(second.policy.model)
    same = all(torch.equal(weight, after[name]) for name, weight in full_state(first.policy.model).items())
    return loads, len(losses) == 1 and same


def measured(folder: Path, world: World) -> dict[str, dict[str, Any]]:
    """Figures by family."""
    families = [sampled_family(folder, name) for name in NAMES]
    each = [(family, layout) for family in families for layout in LAYOUTS]
    two = launch(folder, 2, [family.name(layout) for family, layout in each], probe="update_probe")
    found: dict[str, dict[str, Any]] = {}
    for family in families:
        losses, gradients = [], {}
        for layout in LAYOUTS:
            name = family.name(layout)
            gaps = [family.gap(layout, update) for update in (by_trainer(folder, name, world), two[name])]
            losses += [loss for loss, _ in gaps]
            gradients[layout] = max(gradient for _, gradient in gaps)
        loads, resumes = export_and_resume(family, world, folder / family.model_type)
        found[family.model_type] = {
            "template": template_equals(family),
            "loss": max(losses),
            "gradient": max(gradients["padded"], gradients["packed"]),
            "adapters": gradients["adapters"],
            "engine_gap_nats": engine_gap(family, world),
            "export": loads,
            "resume": resumes,
        }
    return found


def main() -> int:
    """Measure, print, and say whether the bars are met."""
    torch.set_num_threads(1)
    world = start_world()
    with tempfile.TemporaryDirectory() as name:
        found = measured(Path(name), world)
    stop_world()
    header = ("family", *next(iter(found.values())))
    print_table(header, [(name, *map(_cell, row.values())) for name, row in found.items()])
    passed = all(
        row["template"] and row["export"] and row["resume"]
        and max(row["loss"], row["gradient"], row["adapters"]) <= BAR
        and row["engine_gap_nats"] <= ENGINE_BAR
        for row in found.values()
    )  # fmt: skip
    figures = {"families": found, "bar": BAR, "bar_engine_nats": ENGINE_BAR}
    return finish("families", figures, passed=passed)


def _cell(value: bool | float) -> str:
    return ("yes" if value else "NO") if isinstance(value, bool) else f"{value:.1e}"


if __name__ == "__main__":
    sys.exit(main())
