"""The recipe's SFT gradient: equal to transformers' own forward, and it teaches."""

from __future__ import annotations

import random

import pytest
import torch

from testing.training.demonstrations import choosing, clicking, typing
from testing.training.teacher_forcing import completion_logprobs, model_inputs, padded
from testing.training.tiny_model import Frames, renderer, tiny_folder
from training.batch.demonstrations_and_questions import SftDataset
from training.batch.screenshot_cache import ScreenshotCache
from training.content.recipes.first_desk.sft_gradient import sft_gradient
from training.model.policy import Policy
from training.render.rendered_sequence import RenderedSequence
from training.render.renderer import Renderer
from training.sampler.engines.transformers_engine import load_model
from training.update.learning_rates import Rates
from training.update.optimisers import make_optimisers


@pytest.fixture(scope="module")
def reader() -> Renderer:
    return renderer()


def plain_loss(
    model: torch.nn.Module,
    microbatches: list[list[RenderedSequence]],
    reader: Renderer,
    pixels: ScreenshotCache,
    entropy_coefficient: float,
) -> torch.Tensor:
    """Token mean of NLL minus entropy bonus, by one forward of transformers' own per microbatch."""
    num_tokens = sum(sum(row.loss_mask) for rows in microbatches for row in rows)
    total = torch.zeros(())
    for rows in microbatches:
        inputs = model_inputs(
            rows, pixels, image_pad_id=reader.image_pad_id, pad_id=reader.pad_id, merge=reader.merge
        )
        mask = padded(rows, lambda row: row.loss_mask, 0).bool()
        logits = model(**inputs, use_cache=False).logits
        total = total - completion_logprobs(logits, inputs["input_ids"])[mask].sum()
        logprobs = logits[:, :-1][mask[:, 1:]].float().log_softmax(-1)
        total = total + entropy_coefficient * (logprobs.exp() * logprobs).sum()
    return total / num_tokens


def test_loss_and_gradient_are_those_of_a_plain_forward(reader):
    frames = Frames()
    data = [clicking(frames), choosing(frames), typing(frames, "red fox", 20), typing(frames, "blue hen", 30)]
    microbatches = SftDataset.from_trajectories(data, reader).batch(10, random.Random(1))
    pixels = ScreenshotCache(reader, fetch=frames.pngs.__getitem__)
    plain, ours = load_model(tiny_folder()), load_model(tiny_folder())
    expected = plain_loss(plain, microbatches, reader, pixels, 0.1)
    expected.backward()
    found = sft_gradient(Policy(ours, temperature=1.0), microbatches, reader, pixels, entropy_coefficient=0.1)
    assert found == pytest.approx(expected.item(), abs=1e-6)
    for (name, one), other in zip(ours.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-6, msg=name)


def train(reader: Renderer, entropy_coefficient: float, steps: int = 15) -> tuple[list[float], float]:
    """Losses over a few steps on one batch, and the entropy bonus' effect: the final NLL."""
    frames = Frames()
    dataset = SftDataset.from_trajectories([choosing(frames)], reader)
    batch = dataset.batch(4, random.Random(0))
    policy = Policy(load_model(tiny_folder()), temperature=1.0)
    pixels = ScreenshotCache(reader, fetch=frames.pngs.__getitem__)
    optimiser = make_optimisers(policy.model, Rates(learning_rate=2e-3, muon_learning_rate=0.02))
    losses = []
    for _ in range(steps):
        losses.append(sft_gradient(policy, batch, reader, pixels, entropy_coefficient=entropy_coefficient))
        optimiser.step()
        optimiser.zero_grad()
    return losses, sft_gradient(policy, batch, reader, pixels)


def test_a_few_steps_learn_one_batch_by_heart_and_the_bonus_keeps_entropy(reader):
    losses, plain = train(reader, 0.0)
    _, with_bonus = train(reader, 0.5)
    assert losses[-1] < 0.2 * losses[0]
    assert with_bonus > 2 * plain
