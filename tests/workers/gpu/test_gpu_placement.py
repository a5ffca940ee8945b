"""Which GPUs trainer and engine get."""

from __future__ import annotations

import pytest

from training.contracts.config import ConfigError, parse_config
from workers.gpu.gpu_placement import TooFewGpus, trainer_and_engine, visible_gpus


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
        {"CUDA_VISIBLE_DEVICES": "4,5"},
        {"DESKHAND_ENGINE_GPUS": "6,7"},
    )


def test_colocated_servers_share_the_trainers_gpus():
    wanted = config(2, servers=1, gpus_per_server=2, placement="colocated")
    assert trainer_and_engine(wanted, ["0", "1"]) == (
        {"CUDA_VISIBLE_DEVICES": "0,1"},
        {"DESKHAND_ENGINE_GPUS": "0,1"},
    )


def test_too_few_gpus_are_told_with_the_numbers():
    with pytest.raises(TooFewGpus, match=r"trainer's 2 and the engine's 2 GPUs \(own\) make 4, but .* has 3"):
        trainer_and_engine(config(2, servers=2), ["0", "1", "2"])


def test_without_sglang_nothing_is_said_about_gpus():
    assert trainer_and_engine(config(1, name="transformers"), []) == ({}, {})


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
