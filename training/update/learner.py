"""The updates of one step over a batch of samples, the same on 1 and N processes.

    samples -> one part per update -> microbatches per rank -> forward, loss share, backward -> clip -> step

Losses are shares of the part's loss by counts of the whole batch: their sum over microbatches and ranks
is the part's loss, and a token weighs the same in a part of two groups as in one of three. A gradient that
is not finite on any rank skips the update on all.
"""

import gc
from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.distributed as dist

from training.batch.collate import Pixels
from training.batch.micro_batch import MicroBatch
from training.batch.samples import Sample
from training.contracts.config import ExperimentConfig
from training.contracts.config.algorithm import PER_TRAJECTORY
from training.distributed.fsdp import between_microbatches, clip_gradients, reshard
from training.distributed.world import World, is_finite_everywhere, sum_over_ranks
from training.model.policy import Policy, TokenScores
from training.update.learning_rates import Rates, grpo_rate_scale, grpo_rates
from training.update.losses.aggregation import BatchCounts
from training.update.microbatch_maker import MicroBatchMaker, TokenIds
from training.update.objective import (
    TOTALS,
    Objective,
    batch_counts,
    likelihood_objective,
    policy_objective,
)
from training.update.optimisers import make_optimisers
from training.update.scoring import with_proximal_logprobs, with_rest_of_trajectory
from training.update.step_result import Gradient, StepResult, Update, step_result

Loss = Callable[[MicroBatch, TokenScores, BatchCounts], Objective]


def split_by_group(samples: Sequence[Sample], num_parts: int) -> list[list[Sample]]:
    """At most `num_parts` parts of whole groups, in the order of the batch; none is empty.

    Neighbours in the batch are of different families as a rule (`rollouts.task_order`), so are those of a
    part. Parts differ by one group at most; where fewer groups are left than parts were asked for, each is
    a part.
    """
    groups: dict[int, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.group_id, []).append(sample)
    rows = list(groups.values())
    count = min(num_parts, len(rows))
    cuts = [len(rows) * part // count for part in range(count + 1)] if count else []
    return [
        [sample for row in rows[start:end] for sample in row]
        for start, end in zip(cuts, cuts[1:], strict=False)
    ]


class Learner:
    """Holds the sharded policy and its optimiser; knows nothing of where samples come from."""

    def __init__(
        self, policy: Policy, world: World, config: ExperimentConfig, token_ids: TokenIds, pixels: Pixels
    ) -> None:
        self.policy = policy
        self.world = world
        self.config = config
        self.pixels = pixels
        self.microbatches = MicroBatchMaker(policy, world, config.optimiser, token_ids, pixels)
        self.reference: Policy | None = None
        self.num_skipped = 0
        """Updates, since this learner was made."""
        self._has_frozen = world.device.type == "cpu"
        self.use_rates(grpo_rates(config.optimiser))

    def use_rates(self, rates: Rates) -> None:
        """Start a stage with a fresh optimiser."""
        self.optimiser = make_optimisers(self.policy, rates)

    def use_temperature(self, temperature: float) -> None:
        """Score at the temperature at which the samples were generated."""
        self.policy.temperature = temperature
        if self.reference is not None:
            self.reference.temperature = temperature

    def policy_step(self, samples: Sequence[Sample], step: int, rate_scale: float = 1.0) -> StepResult:
        """The policy-gradient updates of one batch; `step` is 0-based and drives warm-up and decay."""
        algorithm, optimiser = self.config.algorithm, self.config.optimiser
        self.optimiser.scale_rates(grpo_rate_scale(step, optimiser, algorithm.num_steps) * rate_scale)
        parts = split_by_group(samples, algorithm.updates_per_batch)
        if algorithm.old_logprobs == "recomputed" and len(parts) > 1:
            parts = self._with_proximal_logprobs(parts)
        counts = batch_counts(samples, self._constant()).of_part(len(parts))
        return self._result([self.update(self.policy_gradient(part, counts)) for part in parts])

    def policy_gradient(self, samples: Sequence[Sample], counts: BatchCounts | None = None) -> Gradient:
        """Forward and backward of one update of the GRPO stage; the gradient is left on the weights.

        `counts`: of the batch that `samples` are a part of; None = they are all of it.
        """
        if self.config.algorithm.name in PER_TRAJECTORY:
            samples = with_rest_of_trajectory(self.policy, self.microbatches, samples, self.config.algorithm)

        def loss(batch: MicroBatch, scores: TokenScores, counts: BatchCounts) -> Objective:
            reference = self._reference_logprobs(batch)
            return policy_objective(batch, scores, counts, self.config.algorithm, reference)

        counts = counts or batch_counts(samples, self._constant())
        return self._backward(samples, loss, self.config.optimiser.microbatch_size, counts)

    def likelihood_step(self, samples: Sequence[Sample], scale: float) -> StepResult:
        """One SFT update at `scale` times the peak rates; likelihoods are those at temperature 1."""
        # Demonstrations and locator questions differ in length: two microbatches pad less than one.
        size = max(1, min(self.config.optimiser.microbatch_size, len(samples) // (2 * self.world.size)))
        loss = partial(likelihood_objective, entropy_coefficient=self.config.sft.entropy_coefficient)
        self.optimiser.scale_rates(scale)
        with self.policy.at_temperature(1.0):
            gradient = self._backward(samples, loss, size, batch_counts(samples))
        return self._result([self.update(gradient)])

    def update(self, gradient: Gradient) -> Update:
        """Clip the gradient that is on the weights, and move them. A collective."""
        grad_norm = clip_gradients(self.policy.parameters(), self.config.optimiser.max_grad_norm)
        is_finite = is_finite_everywhere(grad_norm)
        if is_finite:
            self.optimiser.step()
        else:
            self.num_skipped += 1
        self.optimiser.zero_grad()
        self._freeze_garbage()
        return Update(gradient=gradient, grad_norm=grad_norm, was_skipped=not is_finite)

    def _with_proximal_logprobs(self, parts: Sequence[Sequence[Sample]]) -> list[list[Sample]]:
        flat = [sample for part in parts for sample in part]
        scored = iter(with_proximal_logprobs(self.policy, self.microbatches, flat))
        return [[next(scored) for _ in part] for part in parts]

    def _backward(
        self, samples: Sequence[Sample], loss: Loss, microbatch_size: int, counts: BatchCounts
    ) -> Gradient:
        """All microbatches of this rank. A collective."""
        mine = self.microbatches.mine(samples, microbatch_size)
        found: list[tuple[Sequence[Sample], torch.Tensor, torch.Tensor]] = []
        self.optimiser.zero_grad()
        for number, batch in enumerate(self.microbatches.on_device(mine), start=1):
            self._before_microbatch(is_last=number == len(mine))
            objective = loss(batch, self.policy(batch), counts)
            # FSDP2 averages gradients over ranks; shares must be summed.
            (objective.loss * self.world.size).backward()
            totals = torch.cat([objective.loss.detach().double()[None], objective.totals])
            found.append((batch.samples, totals, objective.per_sequence))
        return self._summed(samples, found)

    def _summed(
        self,
        samples: Sequence[Sample],
        found: list[tuple[Sequence[Sample], torch.Tensor, torch.Tensor]],
    ) -> Gradient:
        """Over microbatches and ranks. Reads the device for the first time in an update. A collective."""
        names = ("loss", *TOTALS)
        mine = sum((totals.cpu() for _, totals, _ in found), torch.zeros(len(names), dtype=torch.float64))
        per_sequence: dict[int, torch.Tensor] = {}
        for scored, _, rows in found:
            for sample, row in zip(scored, rows.cpu(), strict=True):
                if row[2] > 0:
                    key = sample.trajectory_id
                    per_sequence[key] = per_sequence.get(key, torch.zeros(3)) + row
        sums = dict(zip(names, sum_over_ranks(mine.tolist()), strict=True))
        return Gradient(samples=samples, sums=sums, per_sequence=self._gather(per_sequence))

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

    def _result(self, updates: Sequence[Update]) -> StepResult:
        return step_result(
            updates,
            self.config.algorithm,
            learning_rate=self.learning_rate,
            skipped_so_far=self.num_skipped,
        )

    def _freeze_garbage(self) -> None:
        """After the first update on a GPU: exempt the objects of imports and compilation from garbage
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
        """The AdamW rate of the text blocks at the last update."""
        return float(self.optimiser.param_groups[-1]["lr"])

    @torch.no_grad()
    def token_logprobs(self, samples: Sequence[Sample]) -> list[list[float]]:
        """Logprobs of the completion tokens of each sample, in order. A collective: every rank scores all."""
        batch = self.microbatches.moved(self.microbatches.collate(list(samples)))
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

    def _constant(self) -> float:
        """Loss tokens that one update may have at most."""
        config, algorithm = self.config, self.config.algorithm
        trajectories = algorithm.group_size * algorithm.groups_per_step / algorithm.updates_per_batch
        return trajectories * config.sampling.max_completion_tokens * config.desktops.max_turns

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
