"""Makes the shipped checkpoint: a tiny random Qwen3-VL, taught by oracle demonstrations.

    python -m training.recipes.first_desk.teach_checkpoint DEMONSTRATIONS OUTPUT [--seed N] [--steps N]

DEMONSTRATIONS is a folder with `trajectories.jsonl` (one `training.contracts.types.Trajectory` a line,
recorded by the oracle on real desktops, train split) and `frames/SHA.png`; `heldout.jsonl` beside it holds
oracle trajectories of held-out tasks. Success is estimated on those screens: a held-out trajectory counts
when the sampled completion of every turn does what the oracle did. (What counts for the product is measured
on desktops by `benchmarks/training/first_desk.py`.) The entropy bonus and `--soften` keep entropy in the
model on purpose: GRPO learns from the difference between good and bad samples, so its first policy must make
both.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from training.batch.screenshot_cache import ScreenshotCache
from training.batch.sft_dataset import SftDataset
from training.contracts.config import ModelConfig, PromptConfig
from training.contracts.types import Trajectory, Turn
from training.model.policy import Policy
from training.model.qwen3_vl_classes import text_model
from training.recipes.first_desk.sft_gradient import sft_gradient
from training.recipes.tiny.make_checkpoint import make_tiny
from training.render.renderer import Renderer
from training.sampler.engines.engine import EngineSequence, SamplingSettings
from training.sampler.engines.transformers_engine import TransformersEngine
from training.update.learning_rates import Rates, sft_rate_scale
from training.update.optimisers import make_optimisers

log = logging.getLogger("make_first_desk")
MAX_TOKENS = 40
EVALUATION_BATCH = 96


def read_trajectories(path: Path) -> list[Trajectory]:
    """One trajectory a line."""
    return [Trajectory.model_validate_json(line) for line in path.read_text().splitlines()]


def estimate_success(
    engine: TransformersEngine,
    pixels: ScreenshotCache,
    trajectories: Sequence[Trajectory],
    temperature: float,
) -> dict[str, float]:
    """Family -> share of oracle trajectories whose every turn the policy would have done alike."""
    renderer, prompts = engine.renderer, []
    for number, trajectory in enumerate(trajectories):
        rendered = renderer.render_trajectory(trajectory)
        for turn, (start, _) in zip(trajectory.turns, rendered.spans, strict=True):
            sequence = EngineSequence(
                sequence_id=f"{number}",
                token_ids=rendered.token_ids[:start],
                pixels=[pixels(name) for name in rendered.images[: turn.index + 1]],
                grids=rendered.grids[: turn.index + 1],
            )
            prompts.append((number, turn, sequence))
    good = [True] * len(trajectories)
    sampling = SamplingSettings(temperature=temperature, max_tokens=MAX_TOKENS)
    for first in range(0, len(prompts), EVALUATION_BATCH):
        part = prompts[first : first + EVALUATION_BATCH]
        completions = engine.generate([sequence for _, _, sequence in part], [sampling] * len(part))
        for (number, turn, _), sampled in zip(part, completions, strict=True):
            text = renderer.decode(sampled.token_ids)
            good[number] &= does_the_same(text, turn, trajectories[number], renderer)
    families: dict[str, list[bool]] = {}
    for trajectory, success in zip(trajectories, good, strict=True):
        families.setdefault(trajectory.task.family, []).append(success)
    return {family: sum(values) / len(values) for family, values in sorted(families.items())}


def does_the_same(text: str, turn: Turn, trajectory: Trajectory, renderer: Renderer) -> bool:
    """True when `text` is the oracle's answer; a click may be up to TOLERANCE permille beside it."""
    assert turn.action is not None, "an oracle acts in every turn"
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

    pixels = ScreenshotCache(renderer, fetch=frame)
    families = set(options.families.split(","))
    demonstrations = [
        t for t in read_trajectories(folder / "trajectories.jsonl") if t.task.family in families
    ]
    heldout = [t for t in read_trajectories(folder / "heldout.jsonl") if t.task.family in families]
    dataset = SftDataset.from_trajectories(demonstrations, renderer, locator_questions=options.questions)
    model = engine.model
    policy = Policy(model, temperature=1.0).to(model.device)
    optimiser = make_optimisers(
        model,
        Rates(
            learning_rate=options.learning_rate,
            muon_learning_rate=options.muon_learning_rate,
            weight_decay=0.02,
        ),
    )
    _log_start(model, demonstrations, heldout, options.seed)
    started, training_s, curve = time.monotonic(), 0.0, Curve(options.record, str(model.device))
    done = 0
    for step in range(options.steps):
        before = time.monotonic()
        rng = random.Random(f"{options.seed}/sft/{step}")
        rate = min(sft_rate_scale(step, options.steps), rate_by_clock(before - started, options.limit_s))
        if rate <= 0.0:
            break
        optimiser.scale_rates(rate)
        model.train()
        batch = dataset.batch(options.batch, rng)
        loss = sft_gradient(policy, batch, renderer, pixels, entropy_coefficient=options.entropy)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        training_s += time.monotonic() - before
        curve.add_loss(step + 1, loss, time.monotonic() - started)
        done = step + 1
        if done % options.evaluate_every == 0:
            mean = assess(engine, pixels, heldout, curve, done)
            log.info("step %d loss %.3f, %.0f s training", done, loss, training_s)
            if mean >= options.stop_at:
                break
    if done % options.evaluate_every:
        assess(engine, pixels, heldout, curve, done)
    soften(model, options.soften)
    return save(engine, random_folder, options.output)


def _log_start(
    model: torch.nn.Module, demonstrations: Sequence[Trajectory], heldout: Sequence[Trajectory], seed: int
) -> None:
    size = sum(parameter.numel() for parameter in model.parameters())
    device = next(model.parameters()).device
    words = "%d parameters, %d demonstrations, %d held-out, device %s, seed %d"
    log.info(words, size, len(demonstrations), len(heldout), device, seed)


def assess(
    engine: TransformersEngine,
    pixels: ScreenshotCache,
    heldout: Sequence[Trajectory],
    curve: Curve,
    step: int,
) -> float:
    """Estimated success at temperature 1, the mean over families; the greedy one is recorded, too."""
    engine.model.eval()
    engine.policy_version += 1
    sampled, greedy = (estimate_success(engine, pixels, heldout, temperature) for temperature in (1.0, 0.0))
    mean = sum(sampled.values()) / len(sampled)
    log.info(
        "step %d success %.2f at temperature 1 %s, greedy %s", step, mean, _short(sampled), _short(greedy)
    )
    curve.add_success(step, sampled, greedy)
    return mean


def rate_by_clock(seconds: float, limit_s: float, decay_share: float = 0.2) -> float:
    """Learning-rate multiplier that reaches 0 when the time is over; 1 without a limit."""
    return 1.0 if not limit_s else min(1.0, max(0.0, (limit_s - seconds) / (decay_share * limit_s)))


class Curve:
    """What is known so far, written while the training runs: a run that is cut short is no lost run."""

    def __init__(self, path: Path | None, device: str) -> None:
        self.path = path
        self.figures: dict[str, Any] = {"device": device, "loss": [], "heldout_estimates": []}

    def add_loss(self, step: int, loss: float, seconds: float) -> None:
        """Every tenth step is kept."""
        if step % 10 == 0 or step == 1:
            self.figures["loss"].append([step, round(loss, 5)])
            self.figures |= {"steps": step, "seconds": round(seconds, 2)}
            self._write()

    def add_success(self, step: int, sampled: dict[str, float], greedy: dict[str, float]) -> None:
        """Family -> share of oracle trajectories on held-out screens; see `estimate_success`."""
        found = {"step": step, "temperature_1": sampled, "greedy": greedy}
        self.figures["heldout_estimates"].append(found)
        self._write()

    def _write(self) -> None:
        if self.path:
            self.path.write_text(json.dumps(self.figures))


def soften(model: torch.nn.Module, factor: float) -> None:
    """Scale all logits by `factor`: the same as sampling at temperature 1 / factor."""
    with torch.no_grad():
        text_model(model).norm.weight.mul_(factor)


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
    parser = argparse.ArgumentParser(
        prog="python -m training.recipes.first_desk.teach_checkpoint", description=__doc__
    )
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
    parser.add_argument("--limit-s", type=float, default=0.0, help="end by the clock; 0 = after --steps")
    parser.add_argument("--record", type=Path, help="file that gets the curve so far, as JSON")
    parser.add_argument("--stop-at", type=float, default=2.0, help="stop when the estimate reaches this")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    train(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
