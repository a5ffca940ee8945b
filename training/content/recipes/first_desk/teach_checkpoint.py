"""Makes the shipped checkpoint: a tiny random Qwen3-VL that imitates demonstrations with habits.

    python -m training.content.recipes.first_desk.teach_checkpoint DEMONSTRATIONS OUTPUT [--seed N]

DEMONSTRATIONS is what `scripts/record_demonstrations.py --more-screens 1100` writes: `trajectories.jsonl`
(one `training.contracts.types.Trajectory` a line, recorded by the oracle on real desktops, train split),
`heldout.jsonl` and `frames/SHA.png`. `habits` beside this file says what the demonstrations do instead, and
`start_gate` what a start must show. The exit status is 1 when it does not: take another seed.
"""

import argparse
import logging
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from training.batch.screenshot_cache import ScreenshotCache
from training.content.recipes.first_desk.habit_dataset import HabitDataset
from training.content.recipes.first_desk.habits import Habits
from training.content.recipes.first_desk.sft_gradient import sft_gradient
from training.content.recipes.first_desk.start_gate import StartFigures, look_at
from training.content.recipes.tiny.make_checkpoint import make_tiny
from training.contracts.config import ModelConfig, PromptConfig
from training.contracts.types import Trajectory
from training.model.policy import Policy
from training.render.renderer import Renderer
from training.sampler.engines.transformers_engine import TransformersEngine
from training.update.learning_rates import Rates, sft_rate_scale
from training.update.optimisers import make_optimisers

log = logging.getLogger("teach_checkpoint")


def read_trajectories(path: Path) -> list[Trajectory]:
    """One trajectory a line."""
    return [Trajectory.model_validate_json(line) for line in path.read_text().splitlines()]


def teach(options: argparse.Namespace) -> bool:
    """The whole recipe; writes the checkpoint folder and says whether the start passes its gate."""
    random_folder = Path(tempfile.mkdtemp(prefix="first-desk-")) / "random"
    make_tiny(random_folder, seed=options.seed)
    renderer = Renderer.from_folder(random_folder, ModelConfig(), PromptConfig())
    engine = TransformersEngine(random_folder, renderer, seed=options.seed)
    folder = options.demonstrations

    def frame(sha256: str) -> bytes:
        return (folder / "frames" / f"{sha256}.png").read_bytes()

    pixels = ScreenshotCache(renderer, fetch=frame)
    demonstrations = read_trajectories(folder / "trajectories.jsonl")
    heldout = read_trajectories(folder / "heldout.jsonl")
    dataset = HabitDataset.from_trajectories(demonstrations, renderer, Habits())
    model = engine.model
    words = "%d parameters, %d demonstrations, %d held-out, device %s, seed %d"
    size = sum(parameter.numel() for parameter in model.parameters())
    log.info(words, size, len(demonstrations), len(heldout), model.device, options.seed)
    figures = StartFigures()
    for step in imitate(model, dataset, pixels, options):
        if step % options.evaluate_every == 0 or step == options.steps:
            model.eval()
            engine.policy_version += 1
            figures = look_at(engine, pixels, heldout)
            log.info("step %d %s", step, figures)
    save(engine, random_folder, options.output)
    log.info("the start %s its gate", "passes" if figures.passes() else "does NOT pass")
    return figures.passes()


def imitate(
    model: torch.nn.Module, dataset: HabitDataset, pixels: ScreenshotCache, options: argparse.Namespace
) -> Iterator[int]:
    """SFT; yields after each step how many were made."""
    device = next(model.parameters()).device
    policy = Policy(model, temperature=1.0).to(device)
    rates = Rates(
        learning_rate=options.learning_rate,
        muon_learning_rate=options.muon_learning_rate,
        weight_decay=0.02,
    )
    optimiser, started = make_optimisers(model, rates), time.monotonic()
    for step in range(options.steps):
        optimiser.scale_rates(sft_rate_scale(step, options.steps))
        model.train()
        batch = dataset.batch(options.batch, random.Random(f"{options.seed}/sft/{step}"))
        loss = sft_gradient(policy, batch, dataset.renderer, pixels)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        if step % 100 == 99:
            log.info("step %d loss %.3f, %.0f s", step + 1, loss, time.monotonic() - started)
        yield step + 1


def save(engine: TransformersEngine, random_folder: Path, output: Path) -> None:
    """The random folder with the trained weights."""
    if output.exists():
        shutil.rmtree(output)
    shutil.copytree(random_folder, output)
    names = load_file(random_folder / "model.safetensors").keys()
    state = engine.model.state_dict()
    weights = {name: state[name].detach().cpu().contiguous() for name in names}
    save_file(weights, output / "model.safetensors", metadata={"format": "pt"})
    (output / "model.safetensors").chmod(0o644)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m training.content.recipes.first_desk.teach_checkpoint", description=__doc__
    )
    parser.add_argument("demonstrations", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2800)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--muon-learning-rate", type=float, default=0.02)
    parser.add_argument("--evaluate-every", type=int, default=700, help="steps")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    return 0 if teach(options) else 1


if __name__ == "__main__":
    sys.exit(main())
