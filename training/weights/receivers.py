"""The receiver of each engine."""

from __future__ import annotations

from training.engine import Engine
from training.engine_batches import BatchedEngine
from training.weights.receiver import Receiver


def receiver_of(engine: Engine) -> Receiver | None:
    """How `engine` takes weights from memory; None when it only reads folders."""
    if isinstance(engine, BatchedEngine):
        from training.engine_transformers import TransformersEngine
        from training.weights.receive_local import LocalReceiver

        return LocalReceiver(engine, engine.engine) if isinstance(engine.engine, TransformersEngine) else None
    from training.engine_sglang import SglangEngine
    from training.weights.receive_sglang import SglangReceiver

    if isinstance(engine, SglangEngine):
        return SglangReceiver(engine.servers)
    return None
