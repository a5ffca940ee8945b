"""A colocated engine gives its GPUs' memory to the trainer while the trainer computes.

    rollouts -> sleep -> optimiser step -> wake -> weight sync -> rollouts

Engines that have GPUs of their own go on, as do those with `engine.sleeps` off; they do not hear of it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from training.contracts.config import ExperimentConfig
from training.distributed.interrupts import on_main
from training.distributed.world import World
from training.rollouts.coordinator_client import CoordinatorClient


@contextmanager
def engine_asleep(
    config: ExperimentConfig, world: World, coordinator: CoordinatorClient | None
) -> Iterator[None]:
    """Around a computation that needs the memory; a collective. `coordinator`: None on ranks other than 0.

    After an error the engine stays asleep: the attempt ends, and the next one starts the engine anew.
    """
    if not config.engine.gives_memory:
        yield
        return
    on_main(world, lambda: coordinator.engine("sleep") if coordinator else None)
    yield
    if world.device.type == "cuda":
        # Activations are free, but this process still holds them; the engine needs them now.
        torch.cuda.empty_cache()
    on_main(world, lambda: coordinator.engine("wake") if coordinator else None)
