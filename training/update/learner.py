"""One optimiser step over a batch of samples, the same on 1 and N processes.

    samples -> microbatches per rank -> forward, loss share, backward -> clip -> step

Losses are shares of the batch loss by global counts, so their sum over microbatches and
ranks is the batch loss. A gradient that is not finite on any rank skips the step on all.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.distributed as dist

from training.batch.byte_patches import BytePatches
from training.batch.collate import Pixels, collate
from training.batch.micro_batch import MicroBatch
from training.batch.packing import pack_over_ranks
from training.batch.prefetch import prefetched
from training.batch.samples import Sample
from training.batch.screenshot_cache import ScreenshotCache
from training.batch.split_by_count import split_over_ranks
from training.contracts.config import ExperimentConfig
from training.distributed.fsdp import between_microbatches, clip_gradients, reshard
from training.distributed.world import World, is_finite_everywhere, sum_over_ranks
from training.model.policy import Policy, TokenScores
from training.model.vision_tower_inputs import vision_inputs
from training.update.learning_rates import Rates, grpo_rates, warmup_scale
from training.update.losses.aggregation import BatchCounts
from training.update.objective import (
    TOTALS,
    Objective,
    batch_counts,
    likelihood_objective,
    policy_objective,
)
from training.update.optimisers import make_optimisers
from training.update.step_result import Gradient, StepResult, update_metrics

LENGTH_MULTIPLE = 128
"""On a GPU: tokens to whose multiples sequences are padded, a tile of the attention kernels."""
Loss = Callable[[MicroBatch, TokenScores, BatchCounts], Objective]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenIds:
    """What collation must know of the tokenizer and the vision tower."""

    pad: int
    image_pad: int
    merge_size: int = 2


class Learner:
    """Holds the sharded policy and its optimiser; knows nothing of where samples come from."""

    def __init__(
        self, policy: Policy, world: World, config: ExperimentConfig, token_ids: TokenIds, pixels: Pixels
    ) -> None:
        self.policy = policy
        self.world = world
        self.config = config
        self.token_ids = token_ids
        self.pixels = pixels
        self.byte_pixels: BytePatches | None = None
        """On a GPU: screenshots travel as bytes, and the GPU makes values of them."""
        if isinstance(pixels, ScreenshotCache) and world.device.type != "cpu":
            self.byte_pixels = pixels.as_bytes(world.device)
        self.reference: Policy | None = None
        self.num_skipped_steps = 0
        self._has_frozen = world.device.type == "cpu"
        self.use_rates(grpo_rates(config.optimiser))

    def use_rates(self, rates: Rates) -> None:
        """Start a stage with a fresh optimiser."""
        self.rates = rates
        self.optimiser = make_optimisers(self.policy, rates)

    def policy_step(self, samples: Sequence[Sample], step: int, rate_scale: float = 1.0) -> StepResult:
        """One policy-gradient update; `step` is 0-based and drives the warm-up."""
        gradient = self.policy_gradient(samples)
        scale = warmup_scale(step, self.rates.warmup_steps) * rate_scale
        return self._finish(samples, gradient, scale)

    def use_temperature(self, temperature: float) -> None:
        """Score at the temperature at which the samples were generated."""
        self.policy.temperature = temperature
        if self.reference is not None:
            self.reference.temperature = temperature

    def policy_gradient(self, samples: Sequence[Sample]) -> Gradient:
        """Forward and backward of a batch of the GRPO stage; the gradient is left on the weights."""

        def loss(batch: MicroBatch, scores: TokenScores, counts: BatchCounts) -> Objective:
            reference = self._reference_logprobs(batch)
            return policy_objective(batch, scores, counts, self.config.algorithm, reference)

        return self._backward(samples, loss, self.config.optimiser.microbatch_size)

    def likelihood_step(self, samples: Sequence[Sample], scale: float) -> StepResult:
        """One SFT update at `scale` times the peak rates."""
        # Demonstrations and locator questions differ in length: two microbatches pad less than one.
        size = max(1, min(self.config.optimiser.microbatch_size, len(samples) // (2 * self.world.size)))
        loss = partial(likelihood_objective, entropy_coefficient=self.config.sft.entropy_coefficient)
        return self._finish(samples, self._backward(samples, loss, size), scale)

    def _backward(self, samples: Sequence[Sample], loss: Loss, microbatch_size: int) -> Gradient:
        """All microbatches of this rank. A collective."""
        counts = batch_counts(samples, self._max_loss_tokens())
        mine = self._shares(samples, microbatch_size)[self.world.rank]
        found: list[tuple[Sequence[Sample], torch.Tensor, torch.Tensor]] = []
        self.optimiser.zero_grad()
        for number, batch in enumerate(self._microbatches(mine), start=1):
            self._before_microbatch(is_last=number == len(mine))
            objective = loss(batch, self.policy(batch), counts)
            # FSDP2 averages gradients over ranks; shares must be summed.
            (objective.loss * self.world.size).backward()
            totals = torch.cat([objective.loss.detach().double()[None], objective.totals])
            found.append((batch.samples, totals, objective.per_sequence))
        return self._summed(found)

    def _summed(self, found: list[tuple[Sequence[Sample], torch.Tensor, torch.Tensor]]) -> Gradient:
        """Over microbatches and ranks. Reads the device for the first time in a step. A collective."""
        names = ("loss", *TOTALS)
        mine = sum((totals.cpu() for _, totals, _ in found), torch.zeros(len(names), dtype=torch.float64))
        per_sequence: dict[int, torch.Tensor] = {}
        for samples, _, rows in found:
            for sample, row in zip(samples, rows.cpu(), strict=True):
                if row[2] > 0:
                    key = sample.trajectory_id
                    per_sequence[key] = per_sequence.get(key, torch.zeros(3)) + row
        sums = dict(zip(names, sum_over_ranks(mine.tolist()), strict=True))
        return Gradient(sums=sums, per_sequence=self._gather(per_sequence))

    def _before_microbatch(self, *, is_last: bool) -> None:
        parallel = self.config.parallel
        # One process holds all gradients in any case; it only saves the sums between microbatches.
        is_alone = self.world.size == 1 and not parallel.cpu_offload
        between_microbatches(
            self.policy,
            is_last=is_last,
            keeps_weights=parallel.reshard == "never",
            keeps_gradients=parallel.reduce == "step" or is_alone,
        )

    def _microbatches(self, shares: Sequence[list[Sample]]) -> Iterator[MicroBatch]:
        """Each on this rank's device; on a GPU the next one is made meanwhile."""
        if self.world.device.type == "cpu":
            yield from (self._moved(self._collate(rows)) for rows in shares)
            return
        for batch in prefetched(shares, lambda rows: self._collate(rows).pinned()):
            yield self._moved(batch)

    def _moved(self, batch: MicroBatch) -> MicroBatch:
        """On this rank's device, its screenshots as values."""
        batch = batch.to(self.world.device)
        if self.byte_pixels is not None and batch.pixel_values is not None:
            batch.pixel_values = self.byte_pixels.values(batch.pixel_values)
        return batch

    def _shares(self, samples: Sequence[Sample], microbatch_size: int) -> list[list[list[Sample]]]:
        """[rank][microbatch][sample]"""
        optimiser, ranks = self.config.optimiser, self.world.size
        if not optimiser.packing:
            return split_over_ranks(samples, num_ranks=ranks, microbatch_size=microbatch_size)
        return pack_over_ranks(
            samples,
            num_ranks=ranks,
            max_tokens=optimiser.microbatch_tokens,
            max_patches=optimiser.microbatch_patches,
        )

    def _finish(self, samples: Sequence[Sample], gradient: Gradient, scale: float) -> StepResult:
        """Clip, step and describe. A collective."""
        self.optimiser.scale_rates(scale)
        grad_norm, was_skipped = self._update()
        self._freeze_garbage()
        return StepResult(
            loss=gradient.sums["loss"],
            grad_norm=grad_norm,
            was_skipped=was_skipped,
            learning_rate=self.learning_rate,
            metrics={
                **update_metrics(gradient.sums, samples, self.config.algorithm),
                "optimiser/grad_norm": grad_norm,
                "optimiser/learning_rate": self.learning_rate,
                "optimiser/skipped_steps": float(self.num_skipped_steps),
            },
            per_sequence=gradient.per_sequence,
        )

    def _update(self) -> tuple[float, bool]:
        """Clip and step; (gradient norm, was skipped). A collective."""
        grad_norm = clip_gradients(self.policy.parameters(), self.config.optimiser.max_grad_norm)
        if not is_finite_everywhere(grad_norm):
            self.num_skipped_steps += 1
            self.optimiser.zero_grad()
            return grad_norm, True
        self.optimiser.step()
        self.optimiser.zero_grad()
        return grad_norm, False

    def _freeze_garbage(self) -> None:
        """After the first step on a GPU: exempt the objects of imports and compilation from garbage
        collection.

        Half a million objects that stay for good; to look through them takes some 0.4 s, while the GPU
        runs out of work in the middle of a step.
        """
        if not self._has_frozen:
            gc.collect()
            gc.freeze()
            self._has_frozen = True

    @property
    def learning_rate(self) -> float:
        """The AdamW rate of the last step (the only rate when Muon is off)."""
        return float(self.optimiser.param_groups[-1]["lr"])

    @torch.no_grad()
    def token_logprobs(self, samples: Sequence[Sample]) -> list[list[float]]:
        """Logprobs of the completion tokens of each sample, in order. A collective: every rank scores all."""
        batch = self._moved(self._collate(list(samples)))
        scores = self.policy(batch)
        reshard(self.policy)
        rows = zip(scores.logprobs, batch.loss_mask, strict=True)
        return [logprobs[mask > 0].tolist() for logprobs, mask in rows]

    @torch.no_grad()
    def _reference_logprobs(self, batch: MicroBatch) -> torch.Tensor | None:
        if self.reference is None:
            return None
        logprobs = self.reference(batch).logprobs
        if self.config.algorithm.reference_offload:
            reshard(self.reference)  # the root would keep its gathered embedding on the device
        return logprobs

    def _collate(self, rows: list[Sample]) -> MicroBatch:
        ids = self.token_ids
        batch = collate(
            rows,
            self.pixels if self.byte_pixels is None else self.byte_pixels.rows,
            pad_id=ids.pad,
            image_pad_id=ids.image_pad,
            merge_size=ids.merge_size,
            is_packed=self.config.optimiser.packing,
            multiple=1 if self.world.device.type == "cpu" else LENGTH_MULTIPLE,
        )
        if batch.image_grid_thw is not None:
            batch.vision = vision_inputs(self.policy.visual, batch.image_grid_thw.tolist())
        return batch

    def _max_loss_tokens(self) -> int:
        return self.config.sampling.max_completion_tokens * self.config.desktops.max_turns

    def _gather(self, mine: dict[int, torch.Tensor]) -> dict[int, tuple[float, float]]:
        """Sums of every rank become means per trajectory."""
        boxes: list[dict[int, torch.Tensor]] = [mine]
        if self.world.size > 1:
            boxes = [{} for _ in range(self.world.size)]
            dist.all_gather_object(boxes, mine)
        sums: dict[int, torch.Tensor] = {}
        for box in boxes:
            for key, row in box.items():
                sums[key] = sums.get(key, torch.zeros(3)) + row
        return {key: (float(row[0] / row[2]), float(row[1] / row[2])) for key, row in sums.items()}
