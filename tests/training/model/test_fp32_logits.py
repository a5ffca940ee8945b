"""Logits in fp32 from a head and hidden states of half precision."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from training.content.recipes.tiny.make_checkpoint import TinySizes, make_tiny
from training.model.fp32_logits import compute_logits, use_fp32_logits
from training.sampler.engines.transformers_engine import load_model


def head_and_hidden(dtype: torch.dtype) -> tuple[nn.Linear, torch.Tensor]:
    torch.manual_seed(0)
    head = nn.Linear(64, 500, bias=False).to(dtype)
    hidden = (8 * torch.randn(7, 64)).to(dtype)
    return head, hidden


def test_half_precision_logits_are_those_of_the_same_numbers_in_fp32() -> None:
    head, hidden = head_and_hidden(torch.bfloat16)
    exact = hidden.float() @ head.weight.float().T
    assert torch.allclose(compute_logits(hidden, head, in_fp32=True), exact, atol=1e-4)
    rounded = compute_logits(hidden, head, in_fp32=False)
    assert rounded.dtype == torch.float32
    assert (rounded - exact).abs().max() > 0.005


def test_fp32_weights_go_through_the_head_as_it_is() -> None:
    head, hidden = head_and_hidden(torch.float32)
    assert torch.equal(compute_logits(hidden, head, in_fp32=True), head(hidden))


@pytest.mark.parametrize("is_frozen", [False, True])
def test_gradients_are_those_of_the_half_precision_product(is_frozen: bool) -> None:
    found = []
    for in_fp32 in (True, False):
        head, hidden = head_and_hidden(torch.bfloat16)
        head.requires_grad_(not is_frozen)
        hidden.requires_grad_()
        compute_logits(hidden, head, in_fp32=in_fp32).log_softmax(-1)[:, 3].sum().backward()
        found.append((hidden.grad, head.weight.grad))
    (hidden, weight), (usual_hidden, usual_weight) = found
    assert far(hidden, usual_hidden) < 0.02
    if is_frozen:
        assert weight is None
    else:
        assert far(weight, usual_weight) < 0.02


def far(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """Distance relative to the size."""
    return float((found.float() - wanted.float()).norm() / wanted.float().norm())


def test_the_engine_and_the_trainer_agree_on_rounding(tmp_path) -> None:
    folder = make_tiny(tmp_path / "model", sizes=TinySizes())
    plain = load_model(folder, "bfloat16", fp32_logits=False)
    full = load_model(folder, "bfloat16")
    ids = torch.arange(5, 25)[None]
    with torch.no_grad():
        hidden = full.model(input_ids=ids).last_hidden_state
        assert plain(input_ids=ids).logits.dtype == torch.bfloat16
        assert torch.equal(full(input_ids=ids).logits, compute_logits(hidden, plain.lm_head, in_fp32=True))


def test_an_fp32_model_keeps_its_numbers(tmp_path) -> None:
    folder = make_tiny(tmp_path / "model", sizes=TinySizes())
    model = load_model(folder, fp32_logits=False)
    ids = torch.arange(5, 25)[None]
    with torch.no_grad():
        before = model(input_ids=ids).logits
        use_fp32_logits(model)
        assert torch.equal(model(input_ids=ids).logits, before)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", [1, 7, 2048])
def test_the_gpus_product_writes_fp32(dtype: torch.dtype, rows: int) -> None:
    torch.manual_seed(0)
    hidden = (8 * torch.randn(rows, 512, device="cuda")).to(dtype).requires_grad_()
    head = nn.Linear(512, 20_000, bias=False, device="cuda", dtype=dtype)
    exact = hidden.double() @ head.weight.double().T
    logits = compute_logits(hidden, head, in_fp32=True)
    assert logits.dtype == torch.float32
    assert (logits - exact).abs().max() < 1e-3
    assert (head(hidden).float() - exact).abs().max() > 1e-3
    logits.log_softmax(-1)[:, 3].sum().backward()
    assert head.weight.grad is not None
    assert head.weight.grad.isfinite().all()
