"""The gradient of one SFT step, in one process without sharding: collation, policy, likelihood."""

from collections.abc import Sequence

from training.batch.collate import Pixels, collate
from training.batch.demonstrations_and_questions import sft_sample
from training.model.policy import Policy
from training.render.rendered_sequence import RenderedSequence
from training.render.renderer import Renderer
from training.update.objective import batch_counts, likelihood_objective


def sft_gradient(
    policy: Policy,
    microbatches: Sequence[Sequence[RenderedSequence]],
    renderer: Renderer,
    pixels: Pixels,
    *,
    entropy_coefficient: float = 0.0,
) -> float:
    """NLL minus entropy bonus, the mean over all loss tokens, nats; adds its gradient to the weights."""
    parts = [[sft_sample(row, number) for number, row in enumerate(rows, start=1)] for rows in microbatches]
    counts = batch_counts([sample for part in parts for sample in part])
    total = 0.0
    for samples in parts:
        batch = collate(
            samples,
            pixels,
            pad_id=renderer.pad_id,
            image_pad_id=renderer.image_pad_id,
            merge_size=renderer.merge,
        ).to(policy.device)
        objective = likelihood_objective(
            batch, policy(batch), counts, entropy_coefficient=entropy_coefficient
        )
        objective.loss.backward()
        total += objective.loss.item()
    return total
