"""Weights reach the engine by every channel, bucket by bucket, or not at all."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from testing.training.gathered_state import full_state
from testing.training.recorded_samples import record_samples, toy_learner
from testing.training.toy_coordinator import ToyCoordinator
from testing.training.toy_desktops import ToyDesktops
from tests.training.conftest import toy_config
from tests.training.loop.test_train import outcome, start_process
from training.contracts.config import ExperimentConfig
from training.distributed.world import World, start_world, stop_world
from training.sampler.weights.engine_tensor_names import check_sglang_names, sglang_name
from training.weights import sync_process_group
from training.weights.channel import Sender
from training.weights.disk_channel import OWNER, PREFIX, DiskChannel, remove_abandoned
from training.weights.errors import SyncFailed, WeightsRefused
from training.weights.model_folder_writer import export_model, write_safetensors
from training.weights.nccl_channel import NcclChannel
from training.weights.unsharded_weights import in_buckets, plain_weights


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    yield start_world()
    stop_world()


def config_of(toy_model: Path, channel: str, **sections: dict) -> ExperimentConfig:
    sections = {"algorithm": {"num_steps": 2}} | sections
    return toy_config(toy_model, engine={"weight_sync": channel}, **sections)


def run(config: ExperimentConfig, output: Path, coordinator: ToyCoordinator, processes: int) -> str:
    """Train in processes of their own; the log."""
    process = start_process(config, output, coordinator, processes=processes)
    code = process.wait(300)
    log = (output / "log").read_text()
    assert code == 0, log[-4000:]
    return log


def stages(coordinator: ToyCoordinator) -> list[str]:
    return [body["stage"] for body in coordinator.seen["/weights"]]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("channel", "processes"), [("nccl", 2), ("ipc", 1)])
def test_the_engine_follows_through_memory(
    channel: str, processes: int, toy_model: Path, coordinator: ToyCoordinator, tmp_path: Path
) -> None:
    run(config_of(toy_model, channel), tmp_path / "run", coordinator, processes)
    assert max(coordinator.metric("sync/drift")) < 1e-4
    assert coordinator.metric("sync/fell_back") == [0.0] * 3
    assert [stage for stage in stages(coordinator) if stage in ("check", "join")] == (
        ["check", "join"] if channel == "nccl" else ["check"]
    ), "agreed on once, not at every sync"
    commits = [b["policy_version"] for b in coordinator.seen["/weights"] if b["stage"] == "commit"]
    assert commits == [0, 1, 2]
    assert coordinator.desktops.engine.policy_version == 2


@pytest.mark.timeout(400)
@pytest.mark.parametrize("stage", [pytest.param("check", marks=pytest.mark.slow), "bucket"])
def test_a_sync_that_breaks_goes_by_disk_and_training_goes_on(
    stage: str, toy_model: Path, coordinator: ToyCoordinator, tmp_path: Path
) -> None:
    coordinator.wishes.refused_stages = (stage,)
    log = run(config_of(toy_model, "nccl"), tmp_path / "run", coordinator, 1)
    assert max(coordinator.metric("sync/drift")) < 1e-4
    assert coordinator.metric("sync/fell_back") == [1.0] * 3
    assert f"nccl, {stage}" in log
    assert stages(coordinator).count("load") == 3
    assert stages(coordinator).count(stage) == 2, "after two failures in a row the quick way is left alone"
    assert coordinator.weight_sync.is_whole
    assert outcome(tmp_path / "run")["step"] == 2


def test_a_broadcast_that_fails_in_its_group_is_a_reason_to_go_by_disk(world: World, tmp_path: Path) -> None:
    sender = Sender(
        model=torch.nn.Linear(2, 2), world=world, coordinator=None, source=tmp_path, directory=tmp_path,
        dtype=torch.float32,
    )  # fmt: skip
    channel = NcclChannel(sender)
    store = sync_process_group.open_store(1)
    channel._group = sync_process_group.join(store, rank=0, world_size=1, name="broken", backend="gloo")
    sync_process_group.abort(channel._group)
    with pytest.raises(SyncFailed, match="nccl, broadcast"):
        channel._broadcast([torch.zeros(2)])
    channel.close()


def test_buckets_hold_neighbours_up_to_the_limit(
    toy_model: Path, toy_desktops: ToyDesktops, world: World
) -> None:
    trainer = toy_learner(toy_config(toy_model), world, toy_desktops.renderer, toy_desktops.frames)
    weights = plain_weights(trainer.policy.model)
    limit = 64 * 1024
    buckets = list(in_buckets(weights, torch.bfloat16, limit))
    assert [weight for bucket in buckets for weight in bucket] == weights
    sizes = [sum(weight.numel * 2 for weight in bucket) for bucket in buckets]
    assert len(buckets) > 3
    assert all(size <= limit or len(bucket) == 1 for size, bucket in zip(sizes, buckets, strict=True))


@pytest.mark.parametrize("lora", [{}, {"rank": 2}])
def test_a_written_folder_holds_the_gathered_weights(
    lora: dict, toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    config = toy_config(toy_model, lora=lora, optimiser={"learning_rate": 1e-2})
    trainer = toy_learner(config, world, toy_desktops.renderer, toy_desktops.frames)
    trainer.policy_step(record_samples(toy_desktops, num_groups=1), 0)
    export_model(trainer.policy.model, toy_model, tmp_path / "folder", world, torch.bfloat16)
    written = load_file(tmp_path / "folder" / "model.safetensors")
    gathered = {w.name: w.gather(torch.bfloat16) for w in plain_weights(trainer.policy.model)}
    assert written.keys() == gathered.keys() == load_file(toy_model / "model.safetensors").keys()
    assert all(torch.equal(written[name], gathered[name]) for name in written)
    if not lora:
        state = full_state(trainer.policy.model)
        assert all(torch.equal(written[name], state[name].bfloat16()) for name in written)


def test_a_tensor_that_was_not_announced_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a is torch.float32 \(3,\), not torch.float32 \(2,\)"):
        write_safetensors(tmp_path / "x.safetensors", [("a", (2,))], torch.float32, [torch.zeros(3)])


def test_names_become_those_of_sglang() -> None:
    assert sglang_name("model.language_model.layers.3.self_attn.k_proj.weight") == (
        "model.layers.3.self_attn.qkv_proj.weight"
    )
    assert sglang_name("model.language_model.layers.0.mlp.up_proj.weight") == (
        "model.layers.0.mlp.gate_up_proj.weight"
    )
    assert sglang_name("model.visual.blocks.1.attn.qkv.bias") == "visual.blocks.1.attn.qkv_proj.bias"
    assert sglang_name("model.visual.blocks.1.attn.proj.bias") == "visual.blocks.1.attn.proj.bias"


OURS = [
    "model.language_model.embed_tokens.weight",
    "model.language_model.layers.0.self_attn.q_proj.weight",
    "model.language_model.layers.0.self_attn.k_proj.weight",
    "model.visual.pos_embed.weight",
]
THEIRS = [
    "model.embed_tokens.weight",
    "lm_head.weight",
    "model.layers.0.self_attn.qkv_proj.weight",
    "model.layers.0.self_attn.rotary_emb.cos_sin_cache",
    "visual.pos_embed.weight",
]


def test_a_tied_head_and_computed_tables_need_no_weight() -> None:
    check_sglang_names(OURS, THEIRS)
    check_sglang_names(OURS, [name for name in THEIRS if name != "lm_head.weight"])


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        ([*OURS, "model.extra"], THEIRS, "1 unknown: model.extra"),
        (OURS[:-1], THEIRS, "1 missing: visual.pos_embed.weight"),
        (OURS[1:], THEIRS, "2 missing: lm_head.weight, model.embed_tokens.weight"),
    ],
)
def test_names_that_do_not_fit_are_listed(ours: list[str], theirs: list[str], words: str) -> None:
    with pytest.raises(WeightsRefused, match=words):
        check_sglang_names(ours, theirs)


def test_weights_are_in_memory_when_they_fit_and_leave_nothing_there(
    toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    trainer = toy_learner(toy_config(toy_model), world, toy_desktops.renderer, toy_desktops.frames)
    memory, directory = tmp_path / "memory", tmp_path / "weights"
    memory.mkdir()
    sender = Sender(
        model=trainer.policy.model,
        world=world,
        coordinator=None,
        source=toy_model,
        directory=directory,
        dtype=torch.bfloat16,
    )
    channel = DiskChannel(sender, memory=memory)
    assert channel.folder.parent == memory
    assert remove_abandoned(memory) == [], "its trainer lives"
    channel.close()
    assert list(memory.iterdir()) == []
    assert DiskChannel(sender, memory=tmp_path / "no-such-folder").folder == directory

    abandoned = memory / f"{PREFIX}old"
    abandoned.mkdir()
    with (abandoned / OWNER).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    assert remove_abandoned(memory) == [abandoned]
    assert json.dumps([str(path) for path in memory.iterdir()]) == "[]"
