"""What the weights say of recorded tokens before an update: forwards without gradient.

    proximal_t      logprob of each token by the weights before the step's first update; what
                    `algorithm.old_logprobs: recomputed` takes ratios against
    rest            sum of the log ratios of a trajectory's *other* sequences, now: RLOO's ratio is the
                    whole trajectory's, and its sequences meet the model in different microbatches

With one update per step the proximal policy is the policy that is updated: no forward is made for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.distributed as dist

from training.batch.samples import Sample
from training.distributed.fsdp import reshard
from training.model.policy import Policy
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


def with_rest_of_ratio(policy: Policy, maker: MicroBatchMaker, samples: Sequence[Sample]) -> list[Sample]:
    """`samples`, each of a split trajectory with the log ratio of the trajectory's others. A collective."""
    split = [sample for sample in samples if sample.trajectory_tokens and not sample.as_likelihood]
    if not split:
        return list(samples)
    own: dict[int, float] = {}
    totals: defaultdict[int, float] = defaultdict(float)
    for sample, row in zip(split, completion_logprobs(policy, maker, split), strict=True):
        old = sample.proximal_logprobs or sample.behaviour_logprobs
        before = (value for value, bit in zip(old, sample.loss_mask, strict=True) if bit)
        own[id(sample)] = sum(now - then for now, then in zip(row, before, strict=True))
        totals[sample.trajectory_id] += own[id(sample)]
    return [
        replace(sample, rest_log_ratio=totals[sample.trajectory_id] - own[id(sample)])
        if id(sample) in own
        else sample
        for sample in samples
    ]


def _at_loss_tokens(sample: Sample, values: Sequence[float]) -> tuple[float, ...]:
    """`values` at the loss tokens, 0.0 elsewhere. [num_tokens]"""
    remaining = iter(values)
    return tuple(next(remaining) if bit else 0.0 for bit in sample.loss_mask)
