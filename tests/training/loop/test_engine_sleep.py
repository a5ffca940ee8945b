"""When a colocated engine sleeps."""

from __future__ import annotations

import pytest
import torch

from training.contracts.config import parse_config
from training.distributed.world import World
from training.loop.grpo_stage import engine_asleep


class Listener:
    """A coordinator that writes down what the engine is told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def engine(self, command: str) -> None:
        self.heard.append(command)


def world() -> World:
    return World(rank=0, size=1, device=torch.device("cpu"))


def test_a_colocated_engine_sleeps_exactly_while_the_trainer_computes():
    config, listener = parse_config({"engine": {"name": "sglang", "placement": "colocated"}}), Listener()
    with engine_asleep(config, world(), listener):
        assert listener.heard == ["sleep"]
    assert listener.heard == ["sleep", "wake"]


@pytest.mark.parametrize("engine", [{}, {"placement": "colocated", "sleeps": False}])
def test_an_engine_with_gpus_of_its_own_or_that_stays_awake_hears_nothing(engine: dict[str, object]):
    config, listener = parse_config({"engine": {"name": "sglang"} | engine}), Listener()
    with engine_asleep(config, world(), listener):
        pass
    assert listener.heard == []


def test_after_an_error_the_engine_is_not_woken_into_memory_that_is_still_in_use():
    config, listener = parse_config({"engine": {"name": "sglang", "placement": "colocated"}}), Listener()
    with pytest.raises(RuntimeError), engine_asleep(config, world(), listener):
        raise RuntimeError("out of memory")
    assert listener.heard == ["sleep"]
