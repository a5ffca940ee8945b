"""Makes the shipped warm start: a tiny random Qwen3-VL, taught by oracle demonstrations.

    python -m training.make_first_desk DEMONSTRATIONS OUTPUT [--seed N] [--steps N]

DEMONSTRATIONS is a folder with `trajectories.jsonl` (one `training.types.Trajectory` a line, recorded by the
oracle on real desktops, train split) and `frames/SHA.png`; `heldout.jsonl` beside it holds oracle
trajectories of held-out tasks. Success is estimated on those screens: a held-out trajectory counts when the
sampled completion of every turn does what the oracle did. (What counts for the product is measured on
desktops by `benchmarks/first_desk.py`.) The entropy bonus and `--soften` keep doubt in the model on purpose:
GRPO learns from the difference between good and bad samples, so a warm start must still make mistakes.
"""

from __future__ import annotations

import argparse
import logging
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence as Items
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from training.config import ModelConfig, PromptConfig
from training.engine import Sampling, Sequence
from training.engine_transformers import TransformersEngine
from training.frames import FramePixels
from training.muon import make_optimisers
from training.rendering import Renderer
from training.sft import SftDataset, rate_factor, sft_step
from training.tiny import make_tiny
from training.types import Trajectory

log = logging.getLogger("make_first_desk")
MAX_TOKENS = 40
EVALUATION_BATCH = 96


def read_trajectories(path: Path) -> list[Trajectory]:
    """One trajectory a line."""
    return [Trajectory.model_validate_json(line) for line in path.read_text().splitlines()]


def estimate_success(
    engine: TransformersEngine, pixels: FramePixels, trajectories: Items[Trajectory], temperature: float
) -> dict[str, float]:
    """Family -> share of oracle trajectories whose every turn the policy would have done alike."""
    renderer, prompts = engine.renderer, []
    for number, trajectory in enumerate(trajectories):
        rendered = renderer.render_trajectory(trajectory)
        for turn, (start, _) in zip(trajectory.turns, rendered.spans, strict=True):
            sequence = Sequence(
                sequence_id=f"{number}",
                token_ids=rendered.token_ids[:start],
                pixels=[pixels(name) for name in rendered.images[: turn.index + 1]],
                grids=rendered.grids[: turn.index + 1],
            )
            prompts.append((number, turn, sequence))
    good = [True] * len(trajectories)
    sampling = Sampling(temperature=temperature, max_tokens=MAX_TOKENS)
    for first in range(0, len(prompts), EVALUATION_BATCH):
        part = prompts[first : first + EVALUATION_BATCH]
        drawn = engine.generate([sequence for _, _, sequence in part], [sampling] * len(part))
        for (number, turn, _), sampled in zip(part, drawn, strict=True):
            text = renderer.decode(sampled.token_ids)
            good[number] &= does_the_same(text, turn, trajectories[number], renderer)
    families: dict[str, list[bool]] = {}
    for trajectory, success in zip(trajectories, good, strict=True):
        families.setdefault(trajectory.task.family, []).append(success)
    return {family: sum(values) / len(values) for family, values in sorted(families.items())}


def does_the_same(text: str, turn, trajectory: Trajectory, renderer: Renderer) -> bool:
    """True when `text` is the oracle's answer; a click may be up to TOLERANCE permille beside it."""
    wanted = renderer.action_text(turn.action, trajectory.task.screen)
    if turn.action.x is None or turn.action.y is None:
        return text == wanted
    head, mark, numbers = text.partition('"coordinate":[')
    wanted_head, _, wanted_numbers = wanted.partition('"coordinate":[')
    pair, wanted_pair = numbers.removesuffix("]}").split(","), wanted_numbers.removesuffix("]}").split(",")
    if not mark or head != wanted_head or len(pair) != 2 or not all(part.isdigit() for part in pair):
        return False
    gaps = [abs(int(a) - int(b)) for a, b in zip(pair, wanted_pair, strict=True)]
    return gaps[0] <= TOLERANCE[0] and gaps[1] <= TOLERANCE[1]


TOLERANCE = (85, 90)
"""Permille beside the centre of first-desk's smallest button (92 x 74 pixels of 512 x 384)."""


def train(options: argparse.Namespace) -> Path:
    """The whole recipe; returns the checkpoint folder."""
    random_folder = Path(tempfile.mkdtemp(prefix="first-desk-")) / "random"
    make_tiny(random_folder, seed=options.seed)
    renderer = Renderer.from_folder(random_folder, ModelConfig(), PromptConfig())
    engine = TransformersEngine(random_folder, renderer, seed=options.seed)
    folder = options.demonstrations

    def frame(sha256: str) -> bytes:
        return (folder / "frames" / f"{sha256}.png").read_bytes()

    pixels = FramePixels(renderer, fetch=frame)
    families = set(options.families.split(","))
    demonstrations = [
        t for t in read_trajectories(folder / "trajectories.jsonl") if t.task.family in families
    ]
    heldout = [t for t in read_trajectories(folder / "heldout.jsonl") if t.task.family in families]
    dataset = SftDataset.from_trajectories(demonstrations, renderer, locator_questions=options.questions)
    model = engine.model
    optimiser = make_optimisers(
        model,
        learning_rate=options.learning_rate,
        muon_learning_rate=options.muon_learning_rate,
        weight_decay=0.02,
    )
    log.info(
        "%d parameters, %d demonstrations, %d held-out, device %s, seed %d",
        sum(p.numel() for p in model.parameters()),
        len(demonstrations),
        len(heldout),
        model.device,
        options.seed,
    )
    started, training_s = time.monotonic(), 0.0
    for step in range(options.steps):
        before = time.monotonic()
        rng = random.Random(f"{options.seed}/sft/{step}")
        optimiser.scale_rates(rate_factor(step, options.steps))
        model.train()
        batch = dataset.batch(options.batch, rng)
        loss = sft_step(model, batch, renderer, pixels, entropy_coefficient=options.entropy)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        training_s += time.monotonic() - before
        if (step + 1) % options.evaluate_every == 0 or step + 1 == options.steps:
            model.eval()
            engine.policy_version += 1
            sampled = estimate_success(engine, pixels, heldout, 1.0)
            mean = sum(sampled.values()) / len(sampled)
            greedy = estimate_success(engine, pixels, heldout, 0.0)
            log.info(
                "step %d loss %.3f success %.2f at temperature 1 %s, greedy %s, %.0f s training of %.0f s",
                step + 1, loss, mean, _short(sampled), _short(greedy), training_s, time.monotonic() - started,
            )  # fmt: skip
            if mean >= options.stop_at:
                break
    soften(model, options.soften)
    return save(engine, random_folder, options.output)


def soften(model: torch.nn.Module, factor: float) -> None:
    """Scale all logits by `factor`: the same as sampling at temperature 1 / factor."""
    with torch.no_grad():
        model.model.language_model.norm.weight.mul_(factor)


def _short(rates: dict[str, float]) -> str:
    return " ".join(f"{family} {rate:.2f}" for family, rate in rates.items())


def save(engine: TransformersEngine, random_folder: Path, output: Path) -> Path:
    """The random folder with the trained weights."""
    if output.exists():
        shutil.rmtree(output)
    shutil.copytree(random_folder, output)
    names = load_file(random_folder / "model.safetensors").keys()
    state = engine.model.state_dict()
    weights = {name: state[name].detach().cpu().contiguous() for name in names}
    save_file(weights, output / "model.safetensors", metadata={"format": "pt"})
    (output / "model.safetensors").chmod(0o644)
    return output


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m training.make_first_desk", description=__doc__)
    parser.add_argument("demonstrations", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--families", default="menu,note,colour")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--questions", type=int, default=10)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--muon-learning-rate", type=float, default=0.02)
    parser.add_argument("--entropy", type=float, default=0.1)
    parser.add_argument("--evaluate-every", type=int, default=100, help="steps")
    parser.add_argument("--soften", type=float, default=1.0, help="factor of the final logits")
    parser.add_argument("--stop-at", type=float, default=2.0, help="stop when the estimate reaches this")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    train(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
