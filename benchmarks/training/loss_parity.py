"""Bar: our GRPO and GSPO losses and gradients equal TRL's within 1e-5; the engine scores like the trainer.

    python -m benchmarks.training.loss_parity

The engine samples on the tiny model, and
the trainer scores the same tokens: max |difference| < 1e-3 nats in fp32.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch

from benchmarks.report import finish, print_table
from testing.training.trl_reference import CASES, LOSS_BAR, make_tensors, our_loss, trl_loss, trl_trainer

LOGPROB_BAR = 1e-3


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


def logprob_difference(folder: Path, *, num_sequences: int = 8) -> float:
    """Max |engine - trainer| logprob over sampled completions of two turns on the tiny model, nats."""
    from training.batch.collate import collate
    from training.batch.samples import Sample
    from training.contracts.config import ModelConfig, PromptConfig
    from training.model.policy import Policy, load_model
    from training.recipes.tiny.make_checkpoint import make_tiny
    from training.render.renderer import Renderer
    from training.sampler.canary import canary_png
    from training.sampler.engines.engine import EngineSequence, SamplingSettings
    from training.sampler.engines.transformers_engine import TransformersEngine

    make_tiny(folder, seed=0)
    renderer = Renderer.from_folder(folder, ModelConfig(), PromptConfig())
    engine = TransformersEngine(folder, renderer, seed=0)
    pixels, grid = renderer.pixels(canary_png()), renderer.image_grid((512, 384))
    sequences = [EngineSequence(sequence_id=str(index)) for index in range(num_sequences)]
    masks: list[list[int]] = [[] for _ in sequences]
    logprobs: list[list[float]] = [[] for _ in sequences]
    stopped = [True] * num_sequences
    for turn in range(2):
        for row, sequence in enumerate(sequences):
            words = f"Click button {row}"
            prompt = renderer.render_turn(
                turn, words, (512, 384), instruction=words, previous_stopped=stopped[row]
            )
            sequence.token_ids += prompt
            sequence.pixels.append(pixels)
            sequence.grids.append(grid)
            masks[row] += [0] * len(prompt)
            logprobs[row] += [0.0] * len(prompt)
        completions = engine.generate(
            sequences, [SamplingSettings(temperature=1.0, max_tokens=20)] * num_sequences
        )
        for row, one in enumerate(completions):
            masks[row] += [1] * len(one.token_ids)
            logprobs[row] += one.logprobs
            stopped[row] = one.finish_reason == "stop"
    samples = [
        Sample(
            trajectory_id=row,
            group_id=0,
            token_ids=tuple(sequence.token_ids),
            loss_mask=tuple(masks[row]),
            behaviour_logprobs=tuple(logprobs[row]),
            policy_versions=(0,) * len(masks[row]),
            images=("screen",) * 2,
            grids=(grid,) * 2,
        )
        for row, sequence in enumerate(sequences)
    ]
    batch = collate(samples, lambda _: pixels, pad_id=renderer.pad_id, image_pad_id=renderer.image_pad_id)
    with torch.no_grad():
        model = load_model(folder, torch.device("cpu"))
        scores = Policy(model, temperature=1.0, banned_ids=renderer.banned_ids)(batch)
    gaps = (scores.logprobs - batch.behaviour_logprobs).abs() * batch.loss_mask
    return float(gaps.max())


def main() -> int:
    """Measure, print, and say whether the bars are met."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        rows = loss_differences(Path(folder) / "trl")
        gap = logprob_difference(Path(folder) / "tiny")
    shown = [(name, f"{loss:.6f}", f"{dl:.1e}", f"{dg:.1e}") for name, loss, dl, dg in rows]
    print_table(("case", "loss", "|loss - TRL|", "max |gradient - TRL|"), shown)
    worst = max(max(dl, dg) for _, _, dl, dg in rows)
    print(f"\nlargest difference to TRL {worst:.2e} (bar {LOSS_BAR:g})")
    print(f"largest engine/trainer logprob difference {gap:.2e} nats (bar {LOGPROB_BAR:g})\n")
    figures = {
        "num_cases": len(rows),
        "max_difference_to_trl": worst,
        "max_logprob_difference_nats": gap,
        "bar_loss": LOSS_BAR,
        "bar_logprob_nats": LOGPROB_BAR,
    }
    return finish("loss_parity", figures, passed=worst <= LOSS_BAR and gap < LOGPROB_BAR)


if __name__ == "__main__":
    sys.exit(main())
