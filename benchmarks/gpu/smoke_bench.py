"""What the parts of `engine_smoke` share: trajectories by the policy server, their scores by transformers."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen3VLForConditionalGeneration

from benchmarks.gpu.models import make_model, write_text_files
from benchmarks.gpu.policy_process import PolicyProcess
from benchmarks.gpu.screens import screen_png
from testing.training.teacher_forcing import model_inputs
from training.contracts.config import ModelConfig, PromptConfig
from training.contracts.types import Observation, Task, Trajectory, TrajectoryStatus, Turn
from training.model.banned_tokens import without_tokens
from training.render.rendered_sequence import RenderedSequence
from training.render.renderer import Renderer
from training.sampler.canary import canary_png
from workers.env.policy_client import PolicyClient

PIXELS = {"min_pixels": 65_536, "max_pixels": 1_048_576}
SCREEN = (1312, 736)


@dataclass(kw_only=True)
class Bench:
    """What the parts share."""

    folder: Path
    model: ModelConfig
    prompt: PromptConfig
    policy: PolicyProcess
    device: torch.device
    tiny: bool
    max_tokens: int
    pngs: dict[str, bytes] = field(default_factory=dict)

    def renderer(self) -> Renderer:
        return Renderer.from_folder(self.folder / "a", self.model, self.prompt)

    def load(self, name: str, dtype: torch.dtype) -> torch.nn.Module:
        """Transformers' own reading of a folder."""
        model = Qwen3VLForConditionalGeneration.from_pretrained(self.folder / name, dtype=dtype)
        return model.to(self.device).eval()

    def free(self) -> None:
        """Give back what a model of this process took."""
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def screen(self, seed: int) -> bytes:
        size = (512, 384) if self.tiny else SCREEN
        return screen_png(seed, size)


def make_weights(bench_folder: Path, name: str, size: str, seed: int, device: torch.device) -> None:
    """Random weights as published models start; another seed, another policy."""
    folder = bench_folder / name
    write_text_files(folder, size)
    make_model(size, device, dtype=torch.bfloat16, seed=seed).save_pretrained(folder)


def play(
    bench: Bench, client: PolicyClient, name: str, *, turns: int, temperature: float, seed: int
) -> tuple[Trajectory, float]:
    """A trajectory as the trainer gets it, and seconds per turn."""
    seen, started = [], time.monotonic()
    for index in range(turns):
        png = bench.screen(seed * 100 + index)
        text = "Open the settings and turn the sound off." if index == 0 else "The action was carried out."
        completion = client.complete(
            name, turn_index=index, text=text, screenshot=png, temperature=temperature,
            max_tokens=bench.max_tokens,
        )  # fmt: skip
        bench.pngs[f"{name}-{index}"] = png
        width, height = (512, 384) if bench.tiny else SCREEN
        observation = Observation(sha256=f"{name}-{index}", width=width, height=height, text=text)
        seen.append(Turn(index=index, observation=observation, completion=completion))
    trajectory = Trajectory(
        trajectory_id=1, group_id=1, task=Task(task_id="t", instruction="Sound off"), turns=tuple(seen),
        source="policy", status=TrajectoryStatus.TERMINATED,
    )  # fmt: skip
    return trajectory, (time.monotonic() - started) / turns


def score(
    bench: Bench,
    model: torch.nn.Module,
    rendered: RenderedSequence,
    *,
    temperature: float,
    wrong: bool = False,
) -> list[float]:
    """Teacher-forced logprobs by transformers, as the trainer has them: after ban and temperature.

    `wrong` shows other pictures, as a control.
    """
    reader = bench.renderer()

    def pixels(name: str) -> Any:
        if name == "canary":
            return reader.pixels(canary_png())
        return reader.pixels(bench.screen(999_999) if wrong else bench.pngs[name])

    inputs = model_inputs(
        [rendered], pixels, image_pad_id=reader.image_pad_id, pad_id=reader.pad_id, merge=reader.merge
    )
    places = torch.tensor(rendered.loss_mask).nonzero().squeeze(-1)
    moved = {name: value.to(bench.device) for name, value in inputs.items()}
    with torch.no_grad():
        # Only the rows in front of completion tokens: 151k logits of every token would fill gigabytes.
        logits = model(**moved, use_cache=False, logits_to_keep=(places - 1).to(bench.device)).logits[0]
    scaled = without_tokens(logits.float(), reader.banned_ids) / temperature
    tokens = inputs["input_ids"][0, places].to(bench.device)
    return scaled.log_softmax(-1).gather(-1, tokens[:, None]).squeeze(-1).tolist()


def masked(rendered: RenderedSequence) -> list[float]:
    return [p for p, m in zip(rendered.behaviour_logprobs, rendered.loss_mask, strict=True) if m]


def apart(ours: list[float], theirs: list[float]) -> dict[str, float]:
    gaps = torch.tensor([abs(a - b) for a, b in zip(ours, theirs, strict=True)])
    return {"mean": gaps.mean().item(), "max": gaps.max().item(), "tokens": len(gaps)}
