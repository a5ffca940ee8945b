"""Bars: losses and gradients equal TRL's and the papers' formulas.

    python -m benchmarks.training.loss_parity

- GRPO and GSPO as TRL computes them in fp32: within 1e-5.
- The published objectives in fp64 (recomputed logprobs, decoupled, dual clip, overlong masking, windowed and
  partly stale trajectories), against TRL and against the formulas in numpy: within 1e-6.
- Whole steps of the trainer in fp32 (several updates, decoupled, windowed RLOO, likelihood terms) against
  transformers and the formulas in fp64, on one and two processes: within 1e-6.

That the engine scores like the trainer is measured by `benchmarks.training.families`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch

from benchmarks.report import finish, print_table
from testing.training.objective_cases import BAR, OBJECTIVES
from testing.training.parallel_probe import launch
from testing.training.trl_reference import CASES, LOSS_BAR, make_tensors, our_loss, trl_loss, trl_trainer


def loss_differences(folder: Path) -> list[tuple[str, float, float, float]]:
    """(case, loss, |loss difference|, max |gradient difference|) of every case."""
    trainer = trl_trainer(folder)
    rows = []
    for seed, case in enumerate(CASES):
        tensors = make_tensors(seed)
        ours, our_gradient = our_loss(case, tensors)
        theirs, their_gradient = trl_loss(case, tensors, trainer)
        difference = float((our_gradient - their_gradient).abs().max())
        rows.append((case.name, ours, abs(ours - theirs), difference))
    return rows


def objective_differences(folder: Path) -> list[tuple[str, float, float, float]]:
    """(case and what it was compared with, loss, |loss difference|, max |gradient difference|)"""
    trainer = trl_trainer(folder)
    return [
        (f"{case.name} / {what}", loss, off, gradient)
        for case in OBJECTIVES
        for what, loss, off, gradient in case.differences(trainer)
    ]


def step_differences(folder: Path) -> list[tuple[str, float, float, float]]:
    """The same of whole steps on one and two processes."""
    from testing.training.update_probe import PATHS, by_formula, differences, write_probe
    from training.content.recipes.tiny.make_checkpoint import TinySizes, make_tiny

    sizes = TinySizes(
        text_hidden=64, text_intermediate=128, vision_hidden=32, vision_intermediate=64, vocabulary=400
    )
    write_probe(folder, make_tiny(folder / "model", seed=0, sizes=sizes))
    expected = {name: by_formula(folder, name) for name in PATHS}
    return [
        (
            f"{name} / {ranks} process{'es' * (ranks > 1)}",
            found[name]["loss"],
            *differences(found[name], expected[name]),
        )
        for ranks in (1, 2)
        for found in [launch(folder, ranks, list(PATHS), probe="update_probe")]
        for name in PATHS
    ]


def main() -> int:
    """Measure, print, and say whether the bars are met."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        in_fp32 = loss_differences(folder / "trl")
        published = objective_differences(folder / "objectives")
        steps = step_differences(folder)
    worst = {}
    for title, rows in (("TRL, fp32", in_fp32), ("objectives, fp64", published), ("whole steps", steps)):
        shown = [(what, f"{loss:.6f}", f"{dl:.1e}", f"{dg:.1e}") for what, loss, dl, dg in rows]
        print_table((title, "loss", "|loss difference|", "max |gradient difference|"), shown)
        worst[title] = max(max(dl, dg) for _, _, dl, dg in rows)
        print(f"largest {worst[title]:.2e}\n")
    figures = {
        "num_cases": len(in_fp32) + len(published) + len(steps),
        "max_difference_to_trl": worst["TRL, fp32"],
        "max_difference_of_objectives": worst["objectives, fp64"],
        "max_difference_of_steps": worst["whole steps"],
        "steps": {what: {"loss": dl, "gradient": dg} for what, _, dl, dg in steps},
        "bar_loss": LOSS_BAR,
        "bar_objectives": BAR,
    }
    passed = worst["TRL, fp32"] <= LOSS_BAR and max(worst["objectives, fp64"], worst["whole steps"]) <= BAR
    return finish("loss_parity", figures, passed=passed)


if __name__ == "__main__":
    sys.exit(main())
