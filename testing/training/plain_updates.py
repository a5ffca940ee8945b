"""The updates of a step by transformers and the papers' formulas alone, in fp64, one sequence at a time.

No packing, no padding, no microbatches, no FSDP: what `training.update` is compared with on one and two
processes. Plain gradient descent, because AdamW's first step is the sign of a gradient: where that is 0,
it is the sign of rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch

from training.batch.samples import Sample
from training.batch.screenshot_cache import ScreenshotCache
from training.contracts.config import ExperimentConfig
from training.model.families.registry import family_at
from training.render.renderer import Renderer

OFF = -1e9
"""Logit of a token that the policy may not choose."""


class PlainUpdates:
    """An unpatched model and one step's updates of it."""

    def __init__(self, config: ExperimentConfig, renderer: Renderer, frames: Path) -> None:
        self.config = config
        self.renderer = renderer
        self.pixels = ScreenshotCache(renderer, directory=frames)
        family = family_at(config.model.path)
        model = family.auto_class.from_pretrained(config.model.path, dtype=torch.float64)
        model.set_experts_implementation("eager")  # the usual one takes no fp64
        self.model = model.train()

    def step(self, samples: Sequence[Sample]) -> float:
        """Mean loss over the updates; the weights have moved."""
        groups = list(dict.fromkeys(sample.group_id for sample in samples))
        count, settings = self.config.algorithm.updates_per_batch, self.config.algorithm
        proximal = [self.logprobs(sample).detach() for sample in samples]
        behaviour = [self._recorded(sample) for sample in samples]
        old = proximal if settings.old_logprobs == "recomputed" else behaviour
        losses = []
        # A token weighs the same in each part, however many trajectories the part has.
        share = len({sample.trajectory_id for sample in samples}) / count
        for part in range(count):
            mine = set(groups[len(groups) * part // count : len(groups) * (part + 1) // count])
            rows = [index for index, sample in enumerate(samples) if sample.group_id in mine]
            weights = [self._weights(proximal[index], behaviour[index]) for index in rows]
            loss = self._loss([samples[i] for i in rows], [old[i] for i in rows], weights) / share
            self.model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for weight in self.model.parameters():
                    if weight.grad is not None:
                        weight -= self.config.optimiser.learning_rate * weight.grad
            losses.append(loss.item())
        return sum(losses) / len(losses)

    def logprobs(self, sample: Sample, temperature: float | None = None) -> torch.Tensor:
        """Of the sample's loss tokens, at the sampling temperature or another. [num_loss_tokens]"""
        ids = torch.tensor([sample.token_ids])
        images = {}
        if sample.images:
            patches = [torch.from_numpy(self.pixels(sha)).double() for sha in sample.images]
            images = {"pixel_values": torch.cat(patches), "image_grid_thw": torch.tensor(sample.grids)}
        if self.renderer.sees:
            images["mm_token_type_ids"] = (ids == self.renderer.image_pad_id).int()
        logits = self.model(input_ids=ids, use_cache=False, **images).logits[0]
        banned = torch.tensor(list(self.renderer.banned_ids), dtype=torch.long)
        logits = logits.index_fill(-1, banned, OFF)
        scored = torch.log_softmax(logits / (temperature or self.config.sampling.temperature), dim=-1)
        places = torch.tensor(sample.loss_mask).nonzero()[:, 0]
        return scored[places - 1, ids[0, places]]

    def _weights(self, proximal: torch.Tensor, behaviour: torch.Tensor) -> torch.Tensor:
        if self.config.algorithm.correction == "none":
            return torch.ones_like(behaviour)
        return (proximal - behaviour).exp().clamp(max=self.config.algorithm.correction_high)

    def _recorded(self, sample: Sample) -> torch.Tensor:
        pairs = zip(sample.behaviour_logprobs, sample.loss_mask, strict=True)
        return torch.tensor([value for value, bit in pairs if bit], dtype=torch.float64)

    def _loss(
        self, samples: Sequence[Sample], old: Sequence[torch.Tensor], weights: Sequence[torch.Tensor]
    ) -> torch.Tensor:
        """Sum over trajectories of the mean over all their tokens of the clipped, weighed surrogate."""
        settings = self.config.algorithm
        gaps = [self.logprobs(sample) - then for sample, then in zip(samples, old, strict=True)]
        tokens: Counter[int] = Counter()
        totals: dict[int, torch.Tensor] = {}
        for sample, gap in zip(samples, gaps, strict=True):
            tokens[sample.trajectory_id] += len(gap)
            totals[sample.trajectory_id] = totals.get(sample.trajectory_id, torch.tensor(0.0)) + gap.sum()
        loss = torch.tensor(0.0, dtype=torch.float64)
        for sample, gap, weight in zip(samples, gaps, weights, strict=True):
            length = tokens[sample.trajectory_id]
            imitated = sample.likelihood_weight if sample.as_likelihood else sample.imitation_weight
            if imitated:
                loss = loss - imitated * self.logprobs(sample, temperature=1.0).sum() / length
            if sample.as_likelihood:
                continue
            log_ratio = {
                "rloo": totals[sample.trajectory_id],
                "gspo": totals[sample.trajectory_id] / length,
            }.get(settings.name, gap)
            ratio = log_ratio.exp().expand_as(gap)
            clipped = ratio.clamp(1 - settings.clip_low, 1 + settings.clip_high)
            surrogate = torch.maximum(-ratio * sample.advantage, -clipped * sample.advantage)
            if sample.advantage < 0:
                surrogate = surrogate.clamp(max=-settings.dual_clip * sample.advantage)
            loss = loss + (surrogate * weight).sum() / length
        return loss
