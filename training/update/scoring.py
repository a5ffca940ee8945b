"""What the weights say of recorded tokens before an update: forwards without gradient.

    proximal_t      logprob of each token by the weights before the step's first update; what
                    `algorithm.old_logprobs: recomputed` takes ratios against
    rest            sums over a trajectory's *other* sequences, now, of log ratios and of the correction's
                    weights: the ratio of RLOO and GSPO is the whole trajectory's, and its sequences meet the
                    model in different microbatches

With one update per step the proximal policy is the policy that is updated: no forward is made for it.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.distributed as dist

from training.batch.samples import Sample
from training.contracts.config import AlgorithmConfig
from training.distributed.fsdp import reshard
from training.model.policy import Policy
from training.update.losses.importance_correction import correction
from training.update.microbatch_maker import MicroBatchMaker


@torch.no_grad()
def completion_logprobs(
    policy: Policy, maker: MicroBatchMaker, samples: Sequence[Sample]
) -> list[list[float]]:
    """Logprobs of each sample's loss tokens by the weights as they are, on every rank. A collective."""
    place = {id(sample): index for index, sample in enumerate(samples)}
    found: dict[int, list[float]] = {}
    for batch in maker.on_device(maker.mine(samples)):
        logprobs, masks = policy(batch).logprobs.cpu(), batch.loss_mask.cpu()
        for sample, row, mask in zip(batch.samples, logprobs, masks, strict=True):
            if id(sample) in place:  # a filler stands for no sample
                found[place[id(sample)]] = row[mask > 0].tolist()
    reshard(policy)
    boxes = [found]
    if maker.world.size > 1:
        boxes = [{} for _ in range(maker.world.size)]
        dist.all_gather_object(boxes, found)
    merged = {index: row for box in boxes for index, row in box.items()}
    return [merged[index] for index in range(len(samples))]


def with_proximal_logprobs(policy: Policy, maker: MicroBatchMaker, samples: Sequence[Sample]) -> list[Sample]:
    """`samples` with the logprobs of their tokens by the weights as they are. A collective."""
    rows = completion_logprobs(policy, maker, samples)
    return [
        replace(sample, proximal_logprobs=_at_loss_tokens(sample, row))
        for sample, row in zip(samples, rows, strict=True)
    ]


def with_rest_of_trajectory(
    policy: Policy, maker: MicroBatchMaker, samples: Sequence[Sample], algorithm: AlgorithmConfig
) -> list[Sample]:
    """`samples`, each of a split trajectory with sums over the trajectory's others. A collective."""
    split = [sample for sample in samples if sample.trajectory_tokens and not sample.as_likelihood]
    if not split:
        return list(samples)
    own: dict[int, tuple[float, float]] = {}
    totals: defaultdict[int, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for sample, row in zip(split, completion_logprobs(policy, maker, split), strict=True):
        ratio, weight = own[id(sample)] = _own_sums(sample, row, algorithm)
        before = totals[sample.trajectory_id]
        totals[sample.trajectory_id] = (before[0] + ratio, before[1] + weight)

    def with_rest(sample: Sample) -> Sample:
        if id(sample) not in own:
            return sample
        whole, mine = totals[sample.trajectory_id], own[id(sample)]
        return replace(sample, rest_log_ratio=whole[0] - mine[0], rest_weight=whole[1] - mine[1])

    return [with_rest(sample) for sample in samples]


def _own_sums(sample: Sample, now: Sequence[float], algorithm: AlgorithmConfig) -> tuple[float, float]:
    """(log ratio, weight of the correction) summed over the sample's loss tokens."""
    behaviour = torch.tensor(_loss_tokens_of(sample.behaviour_logprobs, sample))
    policy = torch.tensor(now)
    proximal = torch.tensor(_loss_tokens_of(sample.proximal_logprobs, sample) or now)
    old = proximal if algorithm.old_logprobs == "recomputed" else behaviour
    weights = correction(
        proximal,
        behaviour,
        torch.ones_like(proximal),
        mode=algorithm.correction,
        low=algorithm.correction_low,
        high=algorithm.correction_high,
    ).weights
    return float((policy - old).double().sum()), float(weights.double().sum())


def _loss_tokens_of(values: Sequence[float], sample: Sample) -> list[float]:
    """Those of `values` that stand at loss tokens; none of none."""
    return [value for value, bit in zip(values, sample.loss_mask, strict=True) if bit] if values else []


def _at_loss_tokens(sample: Sample, values: Sequence[float]) -> tuple[float, ...]:
    """`values` at the loss tokens, 0.0 elsewhere. [num_tokens]"""
    remaining = iter(values)
    return tuple(next(remaining) if bit else 0.0 for bit in sample.loss_mask)
