"""The fast CPU paths give the numbers of the original modules."""

from __future__ import annotations

import pytest
import torch
from transformers import Qwen3VLForConditionalGeneration

from testing.training.teacher_forcing import model_inputs
from testing.training.tiny_model import renderer, screenshot, tiny_folder
from training.batch.rope_positions import rope_positions
from training.model.cpu_vision_tower import use_cpu_paths
from training.render.rendered_sequence import RenderedSequence


@pytest.fixture(scope="module")
def models():
    """The original and the same weights with CPU paths."""
    original, fast = (Qwen3VLForConditionalGeneration.from_pretrained(tiny_folder()) for _ in range(2))
    use_cpu_paths(fast.model.visual)
    return original, fast


def sample(reader, text: str, sizes: dict[str, tuple[int, int]]) -> RenderedSequence:
    rendered = RenderedSequence()
    for index, (name, size) in enumerate(sizes.items()):
        rendered.images.append(name)
        rendered.grids.append(reader.image_grid(size))
        rendered.append_prompt(reader.render_turn(index, text, size, instruction=text))
        rendered.append_completion(
            reader.completion_ids("row 3"), [0.0] * len(reader.completion_ids("row 3")), 0
        )
    return rendered


@pytest.mark.parametrize("sizes", [{"0": (512, 384), "1": (512, 384)}, {"0": (512, 384), "1": (320, 320)}])
def test_logits_and_gradients_are_those_of_the_original(models, sizes):
    reader = renderer()
    samples = [sample(reader, "Choose row 4.", sizes), sample(reader, "Click the red button.", sizes)]
    inputs = model_inputs(
        samples,
        lambda name: reader.pixels(screenshot(int(name), sizes[name])),
        image_pad_id=reader.image_pad_id,
        pad_id=reader.pad_id,
    )
    gradients = []
    for model in models:
        model.zero_grad()
        logits = model(**inputs, use_cache=False).logits
        logits.square().mean().backward()
        patches = model.model.visual.patch_embed.proj.weight.grad
        gradients.append(
            (logits.detach(), patches.clone(), model.model.visual.blocks[0].attn.qkv.weight.grad)
        )
    for original, fast in zip(*gradients, strict=True):
        torch.testing.assert_close(fast, original, rtol=1e-4, atol=1e-5)


def test_rope_positions_are_those_of_transformers(models):
    reader = renderer()
    sizes = {"0": (512, 384), "1": (320, 320)}
    rendered = sample(reader, "Choose row 4.", sizes)
    ids = torch.tensor([rendered.token_ids])
    expected, _ = models[0].model.get_rope_index(
        ids, (ids == reader.image_pad_id).int(), image_grid_thw=torch.tensor(rendered.grids)
    )
    ours = rope_positions(rendered.token_ids, rendered.grids, reader.image_pad_id, reader.merge)
    assert torch.equal(torch.from_numpy(ours), expected[:, 0])


@pytest.mark.parametrize("grids", [[], [(1, 12, 16), (1, 12, 16)], [(1, 12, 18)]])
def test_image_pads_that_do_not_fit_the_grids_are_refused(grids):
    reader = renderer()
    ids = reader.render_turn(0, "Choose row 4.", (512, 384))
    with pytest.raises(ValueError, match="image"):
        rope_positions(ids, grids, reader.image_pad_id, reader.merge)
