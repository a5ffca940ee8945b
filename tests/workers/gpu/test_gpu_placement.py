"""Which GPUs trainer and engine get."""

from __future__ import annotations

import pytest

from training.contracts.config import ConfigError, parse_config
from workers.gpu.gpu_placement import TooFewGpus, placed_gpus, trainer_and_engine, visible_gpus

BY_BUS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def config(processes: int, **engine: object):
    return parse_config(
        {
            "optimiser": {"num_processes": processes},
            "algorithm": {"group_size": 8, "groups_per_step": 8},
            "engine": {"name": "sglang", **engine},
        }
    )


def test_servers_of_their_own_get_the_gpus_behind_the_trainers():
    wanted = config(2, servers=2, gpus_per_server=1)
    assert trainer_and_engine(wanted, ["4", "5", "6", "7"]) == (
        {"CUDA_VISIBLE_DEVICES": "4,5", **BY_BUS},
        {"DESKHAND_ENGINE_GPUS": "6,7", **BY_BUS},
    )


def test_colocated_servers_share_the_trainers_gpus():
    wanted = config(2, servers=1, gpus_per_server=2, placement="colocated")
    assert trainer_and_engine(wanted, ["0", "1"]) == (
        {"CUDA_VISIBLE_DEVICES": "0,1", **BY_BUS},
        {"DESKHAND_ENGINE_GPUS": "0,1", **BY_BUS},
    )


def test_too_few_gpus_are_told_with_the_numbers():
    with pytest.raises(
        TooFewGpus, match=r"trainer's 2 and the engine's 2 GPUs \(own\) make 4, but .* placed on 3"
    ):
        trainer_and_engine(config(2, servers=2), ["0", "1", "2"])


def test_without_sglang_trainer_and_engine_share_what_they_were_placed_on():
    shared = {"CUDA_VISIBLE_DEVICES": "3", **BY_BUS}
    assert trainer_and_engine(config(1, name="transformers"), ["3"]) == (shared, shared)
    assert trainer_and_engine(config(1, name="transformers"), []) == ({}, {})


def test_places_become_the_numbers_of_this_hosts_gpus():
    gpus = [{"index": 2, "uuid": "GPU-a"}, {"index": 5, "uuid": "GPU-b"}]
    assert placed_gpus(["GPU-b", "GPU-a"], gpus) == ["5", "2"]
    assert placed_gpus(["host/cpu0", "host/cpu1"], []) == []
    with pytest.raises(TooFewGpus, match="1 of 2 GPUs that it was placed on are gone"):
        placed_gpus(["GPU-a", "GPU-c"], gpus)


def test_visible_gpus_are_those_that_the_environment_names():
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "2, 3"}) == ["2", "3"]
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": ""}) == []


@pytest.mark.parametrize(
    ("engine", "field"),
    [
        ({"placement": "colocated", "servers": 2}, "engine.servers"),
        ({"placement": "colocated", "weight_sync": "nccl"}, "engine.weight_sync"),
        ({"weight_sync": "ipc"}, "engine.weight_sync"),
        ({"extra_arguments": ["trust"]}, "engine.extra_arguments"),
    ],
)
def test_engines_that_cannot_run_are_refused_by_field(engine: dict, field: str):
    with pytest.raises(ConfigError) as caught:
        config(1, **engine)
    assert list(caught.value.problems) == [field]
