"""How learning rates change over the steps of a stage, and which weights have which."""

from __future__ import annotations

import pytest
import torch
from transformers import get_cosine_with_min_lr_schedule_with_warmup, get_linear_schedule_with_warmup

from training.contracts.config import OptimiserConfig
from training.update.learning_rates import Rates, grpo_rate_scale, grpo_rates, sft_rate_scale
from training.update.optimisers import make_optimisers


@pytest.mark.parametrize(("step", "scale"), [(0, 1 / 30), (29, 1.0), (50, 1.0), (90, 0.5), (100, 0.0)])
def test_the_sft_rate_warms_up_stays_and_decays(step, scale):
    assert sft_rate_scale(step, 100) == pytest.approx(scale)


@pytest.mark.parametrize("decay", ["linear", "cosine"])
def test_a_decay_is_that_of_transformers(decay: str) -> None:
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    if decay == "linear":
        theirs, end = get_linear_schedule_with_warmup(optimiser, 5, 20), 0.0
    else:
        theirs, end = get_cosine_with_min_lr_schedule_with_warmup(optimiser, 5, 20, min_lr_rate=0.2), 0.2
    config = OptimiserConfig(warmup_steps=5, decay=decay, end_rate=end)
    for step in range(20):
        if step >= 5:  # their rise begins at 0, which would waste the first step
            assert grpo_rate_scale(step, config, 20) == pytest.approx(theirs.get_last_lr()[0]), step
        optimiser.step()
        theirs.step()
    assert grpo_rate_scale(25, config, 20) == pytest.approx(end), "an experiment that was lengthened"


def test_without_a_decay_the_rate_stays() -> None:
    assert [grpo_rate_scale(step, OptimiserConfig(warmup_steps=2), 4) for step in range(4)] == [0.5, 1, 1, 1]


def test_tower_and_merger_have_rates_of_their_own() -> None:
    names = ("visual.blocks.0.w", "visual.deepstack_merger_list.0.w", "visual.merger.w", "language_model.w")
    model = torch.nn.Module()
    for name in names:
        part = model
        for piece in name.split(".")[:-1]:
            part = (
                getattr(part, piece, None)
                or part.register_module(piece, torch.nn.Module())
                or getattr(part, piece)
            )
        part.register_parameter("w", torch.nn.Parameter(torch.zeros(2, 2)))
    known = dict(model.named_parameters())
    config = OptimiserConfig(learning_rate=1e-3, vision_rate=0.1, merger_rate=2.0, beta1=0.8, beta2=0.99)
    optimisers = make_optimisers(model, grpo_rates(config))
    found = {
        name: group["lr"]
        for group in optimisers.param_groups
        for parameter in group["params"]
        for name, one in known.items()
        if one is parameter
    }
    assert [found[name] for name in names] == pytest.approx([1e-4, 2e-3, 2e-3, 1e-3])
    assert {group["betas"] for group in optimisers.param_groups} == {(0.8, 0.99)}
    assert optimisers.param_groups[-1]["lr"] == 1e-3, "what is reported is the text blocks'"
    usual = make_optimisers(model, Rates(learning_rate=1e-3, muon_learning_rate=0.01))
    assert len(usual.param_groups) == 1, "all are matrices, all at one rate"
