"""The receiver of each engine."""

from training.sampler.engine import Engine
from training.sampler.engines.request_batching import BatchingEngine
from training.sampler.weights.receiver import Receiver


def receiver_of(engine: Engine) -> Receiver | None:
    """How `engine` takes weights from memory; None when it only reads folders."""
    if isinstance(engine, BatchingEngine):
        from training.sampler.engines.transformers_engine import TransformersEngine
        from training.sampler.weights.receive_in_process import LocalReceiver

        return LocalReceiver(engine, engine.engine) if isinstance(engine.engine, TransformersEngine) else None
    from training.sampler.engines.sglang_engine import SglangEngine
    from training.sampler.weights.receive_sglang import SglangReceiver

    if isinstance(engine, SglangEngine):
        return SglangReceiver(engine.servers)
    return None
