"""Samples: exactly what was sampled, or an error."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from testing.training.sample_values import make_trajectory, make_turn
from testing.training.toy_desktops import ToyDesktops, toy_tasks
from training.batch.samples import Sample, build_samples, check_samples, has_behaviour_logprobs
from training.contracts.types import Trajectory
from training.render.rendered_sequence import RenderedSequence
from training.render.renderer import Renderer


def test_a_multi_turn_sample_holds_every_sampled_token_and_its_pads(toy_desktops: ToyDesktops) -> None:
    renderer = toy_desktops.renderer
    (member,) = toy_desktops.group(1, toy_tasks("train")[0], 1).trajectories
    (sample,) = build_samples(
        member, renderer, advantage=0.5, merge_size=renderer.merge, image_token_id=renderer.image_pad_id
    )
    sampled = [token for turn in member.turns for token in turn.completion.token_ids]
    kept = [token for token, bit in zip(sample.token_ids, sample.loss_mask, strict=True) if bit]
    assert kept == sampled
    assert len(sample.images) == 2
    assert sample.token_ids.count(renderer.image_pad_id) == 2 * 4 * 3, (
        "128 x 96 pixels are 4 x 3 image tokens"
    )
    versions = {v for v, bit in zip(sample.policy_versions, sample.loss_mask, strict=True) if bit}
    assert versions == {0}


class Lying:
    """A renderer that changes one list of what it renders."""

    def __init__(self, renderer: Renderer, name: str, values: object) -> None:
        self.renderer, self.name, self.values = renderer, name, values

    def render_sequences(self, trajectory: Trajectory) -> list[RenderedSequence]:
        (rendered,) = self.renderer.render_sequences(trajectory)
        setattr(rendered, self.name, self.values(getattr(rendered, self.name)))  # type: ignore[operator]
        return [rendered]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("token_ids", lambda ids: ids[:-1] + [ids[-1] + 1], "not the tokens that were sampled"),
        ("loss_mask", lambda mask: [0, 1, *mask[2:]], "not the tokens that were sampled"),
        ("loss_mask", lambda mask: [0] * len(mask), "no completion tokens"),
        ("loss_mask", lambda mask: mask[1:], "loss_mask has"),
        ("behaviour_logprobs", lambda values: values[1:] + values[:1], "moved away"),
        ("images", lambda images: [*images, "a" * 64], "1 images but 0 grids"),
        ("grids", lambda grids: [(1, 4, 4)], "0 images but 1 grids"),
    ],
)
def test_a_sample_that_is_not_what_was_sampled_is_refused(
    toy_renderer: Renderer, name: str, change: object, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        build_samples(make_trajectory(), Lying(toy_renderer, name, change), advantage=0.0)


def test_pads_must_be_those_of_the_grids(toy_renderer: Renderer) -> None:
    (sample,) = build_samples(make_trajectory(), toy_renderer, advantage=0.0)
    wrong = replace(sample, images=("a",), grids=((1, 4, 4),))
    with pytest.raises(ValueError, match="0 image pads, but its grids need 4"):
        check_samples([wrong], make_trajectory(), merge_size=2, image_token_id=toy_renderer.image_pad_id)
    padded = replace(sample, token_ids=(toy_renderer.image_pad_id, *sample.token_ids[1:]))
    with pytest.raises(ValueError, match="1 image pads, but its grids need 0"):
        check_samples([padded], make_trajectory(), merge_size=2, image_token_id=toy_renderer.image_pad_id)


def test_a_trajectory_without_recorded_logprobs_becomes_a_likelihood_sample(toy_renderer: Renderer) -> None:
    spoken = make_turn().completion.model_copy(update={"token_ids": (), "behaviour_logprobs": ()})
    trajectory = make_trajectory(turns=(make_turn(), make_turn(1, completion=spoken)))
    sample: Sample
    (sample,) = build_samples(trajectory, toy_renderer, advantage=1.0, likelihood_weight=0.25)
    assert sample.as_likelihood
    assert sample.likelihood_weight == 0.25


def test_only_what_a_policy_sampled_and_recorded_has_behaviour_logprobs() -> None:
    sampled = make_turn()
    without_some = sampled.completion.model_copy(update={"behaviour_logprobs": (-0.5,)})
    assert has_behaviour_logprobs(make_trajectory(turns=(sampled, make_turn(1))))
    for other in (
        make_turn(1, completion=None),
        make_turn(1, tokens=()),
        make_turn(1, completion=without_some),
    ):
        assert not has_behaviour_logprobs(make_trajectory(turns=(sampled, other)))
    assert not has_behaviour_logprobs(make_trajectory(turns=()))


def test_a_broken_logprob_is_refused(toy_renderer: Renderer) -> None:
    broken = make_turn().completion.model_copy(update={"behaviour_logprobs": (-0.5, -math.inf)})
    with pytest.raises(ValueError, match="not finite"):
        build_samples(make_trajectory(turns=(make_turn(completion=broken),)), toy_renderer, advantage=0.0)
