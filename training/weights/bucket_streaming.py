"""What `nccl` and `ipc` share: the weights travel bucket by bucket, from memory to memory.

    (once: check, open) -> begin -> gather bucket -> send bucket ... -> commit

All ranks gather; only rank 0 speaks to the engine, and after each step it tells the others how it went, so
that a failure ends the sync on every rank at the same place. While the engine takes one bucket in, the next
one is gathered: two are in memory at most.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

from training.contracts.weight_requests import (
    Abort,
    Begin,
    Bucket,
    Canary,
    Check,
    Commit,
    StreamName,
    WeightsRequest,
)
from training.distributed.interrupts import on_main
from training.rollouts.coordinator_client import CoordinatorError
from training.weights.channel import Sender
from training.weights.errors import SyncFailed
from training.weights.unsharded_weights import Weight, in_buckets, plain_weights

logger = logging.getLogger(__name__)

T = TypeVar("T")

BUCKET_BYTES = 1024 * 2**20
"""Large enough that calls cost nothing beside copies, small beside a GPU's memory."""


class StreamingChannel(ABC):
    """See the module's docstring; `name` is the row of the channel table."""

    name: StreamName

    def __init__(self, sender: Sender, *, bucket_bytes: int = BUCKET_BYTES) -> None:
        self.sender = sender
        self.bucket_bytes = bucket_bytes
        self.is_open = False
        self._calls = ThreadPoolExecutor(max_workers=1, thread_name_prefix="weights")
        self._answer: Future[Canary | None] | None = None
        """Of the bucket that the engine is taking in; rank 0 only."""

    def push(self, policy_version: int) -> Canary | None:
        """See Channel."""
        try:
            self._open()
            self._agree(lambda: self._call(Begin(channel=self.name, policy_version=policy_version)))
            for bucket in in_buckets(plain_weights(self.sender.model), self.sender.dtype, self.bucket_bytes):
                self._send(bucket, [weight.gather(self.sender.dtype) for weight in bucket])
            self._agree(self._finish_bucket)
            return self._agree(lambda: self._call(Commit(channel=self.name, policy_version=policy_version)))
        except SyncFailed as error:
            self.is_open = False
            # First the engine, which then hangs up: a broadcast that it never took in ends only by that.
            if self.sender.world.is_main:
                self._report_abort(error)
            self._give_up()
            raise

    def close(self) -> None:
        """See Channel."""
        self._give_up()
        self._calls.shutdown(wait=False, cancel_futures=True)

    @abstractmethod
    def _open_stream(self) -> None:
        """Make what the buckets travel through. A collective; raises SyncFailed."""

    @abstractmethod
    def _send(self, bucket: list[Weight], tensors: list[torch.Tensor]) -> None:
        """Start one bucket, after the one before has arrived. A collective; raises SyncFailed."""

    @abstractmethod
    def _give_up(self) -> None:
        """Drop what `_open_stream` made, whatever state it is in."""

    def _open(self) -> None:
        if self.is_open:
            return
        weights = [(weight.name, list(weight.shape)) for weight in plain_weights(self.sender.model)]
        self._agree(lambda: self._call(Check(channel=self.name, weights=weights)))
        self._open_stream()
        self.is_open = True

    def _bucket_request(self, bucket: list[Weight], handles: list[str] | None = None) -> Bucket:
        return Bucket(
            channel=self.name,
            names=[weight.name for weight in bucket],
            shapes=[list(weight.shape) for weight in bucket],
            dtype=str(self.sender.dtype).removeprefix("torch."),
            handles=handles or [],
        )

    def _call(self, request: WeightsRequest) -> Canary | None:
        """Ask the engine, once: a step that was half done must not be repeated. Raises SyncFailed."""
        try:
            return self.sender.main_coordinator.sync_weights(request)
        except CoordinatorError as error:
            raise SyncFailed(f"{self.name}, {request.stage}: {error}") from error

    def _start_call(self, request: WeightsRequest) -> None:
        self._answer = self._calls.submit(self._call, request)

    def _finish_bucket(self) -> None:
        """Wait until the engine has taken the last bucket in. Raises SyncFailed."""
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.result()

    def _agree(self, work: Callable[[], T]) -> T:
        """Do `work` on rank 0; its result, or its SyncFailed, on every rank."""

        def attempt() -> tuple[T | None, str | None]:
            try:
                return work(), None
            except SyncFailed as error:
                return None, str(error)

        result, failure = on_main(self.sender.world, attempt)
        if failure is not None:
            raise SyncFailed(failure)
        return result  # type: ignore[return-value]

    def _report_abort(self, error: SyncFailed) -> None:
        try:
            self._call(Abort(channel=self.name, reason=str(error)[:500]))
        except SyncFailed as silence:
            logger.warning("the engine did not hear that a weight sync was given up: %s", silence)
