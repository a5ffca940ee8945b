"""Waits before a checkpoint that would not fit on the disk: a full disk would end the attempt half-way."""

import logging
import time

from training.checkpoints.store import CheckpointStore, folder_bytes
from training.contracts.types import Control
from training.distributed.interrupts import Interrupted
from training.rollouts.coordinator_client import CoordinatorClient
from training.update.learner import Learner

logger = logging.getLogger(__name__)
POLL_S = 2.0
BYTES_PER_WEIGHT = 16
"""Of a first checkpoint, at most: weights, two moments and the model folder, each in fp32."""
BYTES_PER_FROZEN_WEIGHT = 8
"""The same without moments; half where it refers to the base."""


def wait_for_room(coordinator: CoordinatorClient, store: CheckpointStore, learner: Learner) -> None:
    """Until the coordinator finds room for the next checkpoint. Raises Interrupted on cancel; rank 0 only.

    A pause does not end the wait: without a checkpoint it would lose the steps since the last one.
    """
    newest, has_waited = store.newest(), False
    num_bytes = folder_bytes(newest) if newest else most_bytes(store, learner)
    while shortage := coordinator.shortage_of_checkpoint(str(store.directory), num_bytes):
        if not has_waited:
            logger.warning("waiting for disk space: %s", shortage)
        has_waited = True
        if coordinator.control() is Control.CANCEL:
            raise Interrupted(Control.CANCEL)
        time.sleep(POLL_S)
    if has_waited:
        logger.info("there is room for the checkpoint again")


def most_bytes(store: CheckpointStore, learner: Learner) -> int:
    """What a first checkpoint needs at most, while it is written."""
    per_frozen = BYTES_PER_FROZEN_WEIGHT // (2 if store.base else 1)
    return sum(
        weight.numel() * (BYTES_PER_WEIGHT if weight.requires_grad else per_frozen)
        for weight in learner.policy.model.parameters()
    )
