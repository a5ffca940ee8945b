"""On a CUDA machine: every fast path learns what the plain path learns, on one GPU and on two.

    python -m pytest -m gpu tests/training/distributed/test_cuda.py

The reference is fp32, padded, eager, on the same GPU; the CPU tests tie that layout to gloo's numbers.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest
import torch

from testing.training.parallel_probe import find, launch
from testing.training.recorded_samples import record_samples
from testing.training.resume_probe import assert_resumes
from testing.training.toy_desktops import ToyDesktops
from tests.training.conftest import toy_config
from training.content.recipes.tiny.make_checkpoint import TinySizes, make_tiny
from training.contracts.config import to_yaml
from training.distributed.world import World, start_world, stop_world
from training.model.packed_attention import Bounds, attend_within
from training.render.renderer import Renderer
from training.sampler.engines.transformers_engine import TransformersEngine

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
PACKED = {"packing": True, "microbatch_tokens": 160, "microbatch_patches": 144}
HALF = {"dtype": "bfloat16"}
WHOLE = {"reshard": "never", "reduce": "step"}
LORA = {"rank": 4}
LAYOUTS: dict[str, dict[str, dict]] = {
    "plain": {"optimiser": {"microbatch_size": 2}},
    "packed": {"optimiser": PACKED},
    "whole": {"optimiser": PACKED, "parallel": WHOLE},
    "compiled": {"optimiser": PACKED, "parallel": {"compile_blocks": True}},
    "half-plain": {"model": HALF, "optimiser": {"microbatch_size": 2}},
    "half-packed": {"model": HALF, "optimiser": PACKED},
    "half-all": {
        "model": HALF,
        "optimiser": PACKED,
        "parallel": WHOLE
        | {"compile_blocks": True, "activation_checkpointing": True, "recomputed_share": 0.5},
    },
    "lora-plain": {"optimiser": {"microbatch_size": 2}, "lora": LORA},
    "lora-packed": {"optimiser": PACKED, "parallel": WHOLE | {"compile_blocks": True}, "lora": LORA},
    "lora-whole": {"optimiser": PACKED, "parallel": WHOLE, "lora": LORA},
    "lora-half": {"model": HALF, "optimiser": PACKED, "lora": LORA},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recorded samples of a toy model whose heads are as wide as flash attention wants them."""
    folder = tmp_path_factory.mktemp("cuda")
    sizes = TinySizes(
        text_hidden=128, text_intermediate=256, vision_hidden=64, vision_intermediate=64, vocabulary=400
    )
    model = make_tiny(folder / "toy", seed=0, sizes=sizes)
    config = toy_config(model)
    renderer = Renderer.from_folder(model, config.model, config.prompt)
    engine = TransformersEngine(model, renderer, seed=1)
    desktops = ToyDesktops(engine=engine, renderer=renderer, frames=folder / "frames")
    (folder / "samples.pickle").write_bytes(pickle.dumps(record_samples(desktops)[:7]))
    for name, sections in LAYOUTS.items():
        algorithm = {"aggregation": "sequence_mean"}
        (folder / f"{name}.yaml").write_text(to_yaml(toy_config(model, algorithm=algorithm, **sections)))
    return folder


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    torch.backends.cuda.matmul.allow_tf32 = False
    yield start_world()
    stop_world()


@pytest.fixture(scope="module")
def plain(folder: Path, world: World) -> dict:
    return find(folder, "plain", world)


@pytest.fixture(scope="module")
def adapters(folder: Path, world: World) -> dict:
    return find(folder, "lora-plain", world)


def distance(expected: dict, found: dict) -> float:
    """Norm of the difference of all gradients over the norm of the expected ones."""
    assert found["gradients"].keys() == expected["gradients"].keys()
    names = expected["gradients"].keys()
    gap = sum(float((found["gradients"][n] - expected["gradients"][n]).double().pow(2).sum()) for n in names)
    size = sum(float(expected["gradients"][n].double().pow(2).sum()) for n in names)
    return (gap / size) ** 0.5


@pytest.mark.parametrize("name", ["packed", "whole", "compiled"])
def test_fp32_layouts_find_the_same_gradient(name: str, folder: Path, world: World, plain: dict) -> None:
    found = find(folder, name, world)
    assert found["sums"] == pytest.approx(plain["sums"], rel=1e-3, abs=1e-4)
    assert distance(plain, found) < 1e-3


@pytest.mark.parametrize("name", ["half-plain", "half-packed", "half-all"])
def test_bf16_layouts_find_it_within_rounding(name: str, folder: Path, world: World, plain: dict) -> None:
    found = find(folder, name, world)
    assert found["sums"]["entropy"] == pytest.approx(plain["sums"]["entropy"], rel=2e-2)
    gaps = [gap for _, gap in found["per_sequence"].values()]
    assert sum(gaps) / len(gaps) < 0.05
    assert distance(plain, found) < 0.1


@pytest.mark.parametrize(("name", "limit"), [("lora-packed", 1e-3), ("lora-half", 0.1)])
def test_adapters_learn_the_same_in_every_layout(
    name: str, limit: float, folder: Path, world: World, adapters: dict
) -> None:
    assert all("lora" in key for key in adapters["gradients"])
    found = find(folder, name, world)
    assert found["sums"]["entropy"] == pytest.approx(adapters["sums"]["entropy"], rel=2e-2)
    assert distance(adapters, found) < limit


@pytest.mark.parametrize("is_causal", [True, False])
@pytest.mark.parametrize("lengths", [[1152, 1280], [1152, 1152], [300, 64, 77]])
def test_attention_on_the_gpu_stays_within_sequences(lengths: list[int], is_causal: bool) -> None:
    generator = torch.Generator("cuda").manual_seed(0)
    parts = [
        torch.randn(sum(lengths), heads, 64, device="cuda", generator=generator, requires_grad=True)
        for heads in (4, 2, 2)
    ]
    starts = torch.tensor([0, *accumulate(lengths)], dtype=torch.int32, device="cuda")
    bounds = Bounds(starts, lengths)
    weight = torch.randn(sum(lengths), 4, 64, device="cuda", generator=generator)
    results = []
    for dtype in (torch.float32, torch.bfloat16):
        cast = [part.to(dtype) for part in parts]
        out = attend_within(*cast, bounds, scaling=None, is_causal=is_causal).float()
        results.append([out, *torch.autograd.grad((out * weight).sum(), parts)])
    for exact, rounded in zip(*results, strict=True):
        assert float(((exact - rounded).norm() / exact.norm()).detach()) < 2e-2


@pytest.mark.parametrize("processes", [2, 4, 8])
def test_processes_over_nccl_find_the_same_gradient(
    processes: int, folder: Path, plain: dict, adapters: dict
) -> None:
    if torch.cuda.device_count() < processes:
        pytest.skip(f"needs {processes} GPUs")
    expected = {"plain": plain, "whole": plain, "lora-whole": adapters}
    found = launch(folder, processes, list(expected), limit_s=300)
    for name, one in expected.items():
        assert distance(one, found[name]) < 1e-3


@pytest.mark.parametrize(("before", "after"), [(4, 2), (2, 4), (8, 2), (2, 8)])
def test_another_number_of_gpus_resumes_with_the_same_losses(
    before: int, after: int, folder: Path, plain: dict, tmp_path: Path
) -> None:
    if torch.cuda.device_count() < max(before, after):
        pytest.skip(f"needs {max(before, after)} GPUs")
    assert_resumes(folder, tmp_path / "saved", before, after, tolerance=1e-4, limit_s=200)
