"""Every family that is supported computes what transformers computes, and leaves as it came."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig

import training.sampler.sglang.models
from testing.training.family_probe import LAYOUTS, Family, family_config, sampled_family
from testing.training.gathered_state import full_state
from testing.training.parallel_probe import launch
from testing.training.recorded_samples import toy_learner
from testing.training.tiny_families import NAMES
from testing.training.update_probe import by_trainer
from training.checkpoints.export import export_checkpoint
from training.checkpoints.store import CheckpointStore, ExperimentState
from training.contracts.trainer_state import LearningStage
from training.distributed.world import World, start_world, stop_world
from training.model.families.registry import BY_NAME, family_at, family_of
from training.planning.model_families import FAMILIES, UnsupportedModel, family_of_config, family_of_folder
from training.sampler.weights.engine_tensor_names import check_sglang_names, check_shapes
from training.sampler.weights.receive_in_process import LocalReceiver
from training.weights.errors import WeightsRefused
from training.weights.unsharded_weights import plain_weights

LOSS_BAR = 1e-6
ENGINE_BAR = 1e-5
"""Nats."""
BLOCK = [
    "self_attn.qkv_proj.weight", "self_attn.o_proj.weight", "mlp.gate_up_proj.weight",
    "mlp.down_proj.weight", "input_layernorm.weight", "post_attention_layernorm.weight",
]  # fmt: skip
EXTRA = {
    "qwen2": ["self_attn.qkv_proj.bias"],
    "qwen2_5_vl": ["self_attn.qkv_proj.bias"],
    "qwen3": ["self_attn.q_norm.weight", "self_attn.k_norm.weight"],
    "qwen3_vl": ["self_attn.q_norm.weight", "self_attn.k_norm.weight"],
}


STATE = ["in_proj_qkvz.weight", "in_proj_ba.weight", "conv1d.weight", "A_log", "dt_bias", "norm.weight"]
ATTENTION = ["qkv_proj.weight", "o_proj.weight", "q_norm.weight", "k_norm.weight"]
"""Of SGLang's Qwen3.5, whose blocks have no module for their attention."""


def state_names(*, has_experts: bool) -> list[str]:
    """SGLang's, of a block with a state and of one that attends."""
    shared = [name for name in BLOCK if not name.startswith("self_attn")]
    if has_experts:
        inner = ["experts.w13_weight", "experts.w2_weight", "gate.weight", "shared_expert_gate.weight"]
        inner += ["shared_expert.gate_up_proj.weight", "shared_expert.down_proj.weight"]
        shared = [name for name in shared if not name.startswith("mlp")] + [f"mlp.{name}" for name in inner]
    first = [*shared, *(f"linear_attn.{name}" for name in [*STATE, "out_proj.weight"])]
    return [
        f"model.layers.{place}.{name}"
        for place, names in enumerate((first, [*shared, *ATTENTION]))
        for name in names
    ]


class Families(dict[str, Family]):
    """Each made when a test first reads it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __missing__(self, name: str) -> Family:
        self[name] = sampled_family(self.folder, name)
        return self[name]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    yield start_world()
    stop_world()


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> Families:
    return Families(tmp_path_factory.mktemp("families"))


@pytest.fixture(
    params=[
        name if name in ("qwen3", "qwen2_5_vl", "qwen3_5") else pytest.param(name, marks=pytest.mark.slow)
        for name in NAMES
    ]
)
def family(request: pytest.FixtureRequest, families: Families) -> Family:
    return families[request.param]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_loss_and_gradient_are_those_of_transformers(family: Family, layout: str, world: World) -> None:
    loss, gradient = family.gap(layout, by_trainer(family.folder, family.name(layout), world))
    assert loss <= LOSS_BAR
    assert gradient <= LOSS_BAR


@pytest.mark.slow
def test_two_processes_find_the_same(families: Families) -> None:
    each = [(families[name], layout) for name in NAMES for layout in LAYOUTS]
    found = launch(families.folder, 2, [family.name(layout) for family, layout in each], probe="update_probe")
    gaps = {family.name(layout): family.gap(layout, found[family.name(layout)]) for family, layout in each}
    assert {name: gap for name, gap in gaps.items() if max(gap) > LOSS_BAR} == {}


def test_the_trainer_scores_what_the_engine_sampled(family: Family, world: World) -> None:
    is_lean = family.engine.lean is not None
    assert is_lean is not family.engine.family.keeps_state, "others are decoded by the quick path"
    learner = toy_learner(
        family_config(family.model, sampling={"temperature": 1.0}),
        world,
        family.renderer,
        family.folder / "frames",
    )
    for sample, ours in zip(family.samples, learner.token_logprobs(family.samples), strict=True):
        theirs = [
            value for value, bit in zip(sample.behaviour_logprobs, sample.loss_mask, strict=True) if bit
        ]
        assert ours == pytest.approx(theirs, abs=ENGINE_BAR)


def test_an_export_is_the_policy_and_a_checkpoint_resumes(
    family: Family, world: World, tmp_path: Path
) -> None:
    config = family_config(family.model, optimiser={"learning_rate": 1e-2, "packing": True})
    learners = [toy_learner(config, world, family.renderer, family.folder / "frames") for _ in range(2)]
    first, second = learners
    first.policy_step(family.samples, 0)
    store = CheckpointStore(tmp_path / "checkpoints", keep_last=1)
    saved = store.save(first, ExperimentState(stage=LearningStage.GRPO), family.model)
    output = export_checkpoint(saved, tmp_path / "export", dtype="float32")
    loaded, info = family_at(output).auto_class.from_pretrained(output, output_loading_info=True)
    assert not any(info.values())
    trained = full_state(first.policy.model)
    for name, weight in loaded.named_parameters():
        assert torch.equal(weight, trained[name]), name
    names = {output: set(load_file(output / "model.safetensors")), family.model: set()}
    assert names[output] == set(load_file(family.model / "model.safetensors")), "as transformers saves it"
    store.load(saved, second)
    losses = [learner.policy_step(family.samples, 1).loss for learner in learners]
    assert losses[0] == losses[1]
    assert all(
        torch.equal(weight, full_state(second.policy.model)[name])
        for name, weight in full_state(first.policy.model).items()
    )


def test_every_weight_has_its_place_in_the_engines(family: Family, world: World) -> None:
    config = family_config(family.model)
    learner = toy_learner(config, world, family.renderer, family.folder / "frames")
    ours = {weight.name: weight.shape for weight in plain_weights(learner.policy.model)}
    receiver = LocalReceiver(None, family.engine)  # type: ignore[arg-type]
    check_shapes(ours, {name: tuple(tensor.shape) for name, tensor in receiver._tensors().items()})
    blocks = [name for name in ours if ".layers.1." in name]
    theirs = [f"model.layers.1.{name}" for name in [*BLOCK, *EXTRA.get(family.model_type, [])]]
    if family.engine.family.keeps_state:
        blocks = [name for name in ours if ".layers." in name]
        theirs = state_names(has_experts="experts" in str(blocks))
    check_sglang_names(blocks, theirs)
    with pytest.raises(WeightsRefused, match=r"unknown.*o_proj"):
        check_sglang_names(blocks, [name for name in theirs if "o_proj" not in name])


def test_every_architecture_has_a_class_for_sglang() -> None:
    """Which SGLang finds by its name; the files themselves can be imported only where SGLang is."""
    folder = Path(training.sampler.sglang.models.__file__).parent
    trees = [ast.parse(path.read_text()) for path in folder.glob("*.py")]
    given = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    types = [one for row in FAMILIES if row.is_served for one in row.model_types]
    for model_type in types:
        config = AutoConfig.for_model(model_type)
        built = family_of(config).auto_class._model_mapping[type(config)]
        assert built.__name__ in given, model_type


def test_a_windowed_tower_has_sglangs_names(families: Families) -> None:
    names = set(load_file(families["qwen2_5_vl"].model / "model.safetensors"))
    block = [name for name in names if name.startswith("visual.blocks.1.")]
    parts = ("attn.qkv_proj", "attn.proj", "mlp.gate_up_proj", "mlp.down_proj")
    wanted = [f"visual.blocks.1.{part}.{kind}" for part in parts for kind in ("weight", "bias")]
    check_sglang_names(block, [*wanted, "visual.blocks.1.norm1.weight", "visual.blocks.1.norm2.weight"])


def test_windows_attend_in_one_call_as_one_by_one(families: Families) -> None:
    """The paths of a GPU, on the CPU."""
    family = families["qwen2_5_vl"]
    grids = [(1, 6, 10), (1, 4, 4)]
    pixels = torch.randn(76, 3 * 2 * 14 * 14, generator=torch.Generator().manual_seed(0))
    file = family_at(family.model)
    plain, quick = (file.auto_class.from_pretrained(family.model) for _ in range(2))
    file.use_quick_paths(quick, torch.device("cuda"))
    with torch.no_grad():
        expected = plain.model.visual(pixels, grid_thw=torch.tensor(grids), return_dict=True).pooler_output
        (found,) = file.see(quick.model.visual, pixels, torch.tensor(grids), file.tower_inputs(quick, grids))
    torch.testing.assert_close(found, expected)


def test_both_layouts_of_names_are_read(families: Families, world: World, tmp_path: Path) -> None:
    """The hub's, which transformers writes, and those of the model, which other trainers write."""
    family = families["qwen2_5_vl"]
    tensors = load_file(family.model / "model.safetensors")
    assert "visual.patch_embed.proj.weight" in tensors
    for path in family.model.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    longer = {
        "model." + name.replace("model.", "language_model.", 1) if name != "lm_head.weight" else name: tensor
        for name, tensor in tensors.items()
    }
    save_file(longer, tmp_path / "model.safetensors", {"format": "pt"})
    states = [
        full_state(toy_learner(family_config(folder), world, family.renderer, folder).policy.model)
        for folder in (family.model, tmp_path)
    ]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(weight, states[1][name]) for name, weight in states[0].items())


def test_every_row_of_the_table_has_its_file() -> None:
    assert {row.name for row in FAMILIES} == set(BY_NAME)
    types = [one for row in FAMILIES for one in row.model_types]
    assert len(types) == len(set(types))
    assert set(NAMES) <= set(types)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"model_type": "gemma3"}, r"gemma3 is not supported.*Qwen3-VL.*Qwen2\.5-VL.*qwen3, qwen2, llama"),
        ({"hidden_size": 3}, r"model_type is missing in config\.json"),
        (
            {"model_type": "qwen3", "auto_map": {"AutoModelForCausalLM": "modeling_own.Own"}},
            "qwen3: .*code of its own .*AutoModelForCausalLM.* never run",
        ),
    ],
)
def test_other_models_are_refused_by_name(config: dict, words: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match=words):
        family_of_config(config)
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UnsupportedModel, match=r"^model\.path: "):
        family_of_folder(tmp_path)
