"""Samples become this rank's microbatches, on its device."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from training.batch.byte_patches import BytePatches
from training.batch.collate import Pixels, collate
from training.batch.micro_batch import MicroBatch
from training.batch.packing import pack_over_ranks
from training.batch.samples import Sample
from training.batch.screenshot_cache import ScreenshotCache
from training.batch.split_by_count import split_over_ranks
from training.contracts.config import OptimiserConfig
from training.distributed.world import World
from training.model.policy import Policy

LENGTH_MULTIPLE = 128
"""On a GPU: tokens to whose multiples sequences are padded, a tile of the attention kernels."""


Row = TypeVar("Row")
Batch = TypeVar("Batch")


def prefetched(rows: Sequence[Row], make: Callable[[Row], Batch]) -> Iterator[Batch]:
    """`make(row)` for every row in order, one ahead of the consumer, in a thread of its own."""
    with ThreadPoolExecutor(1, thread_name_prefix="collate") as thread:
        coming = thread.submit(make, rows[0]) if rows else None
        for row in [*rows[1:], None]:
            if coming is None:
                return
            made = coming.result()
            coming = None if row is None else thread.submit(make, row)
            yield made


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenIds:
    """What collation must know of the tokenizer and the vision tower."""

    pad: int
    image_pad: int
    merge_size: int = 2


class MicroBatchMaker:
    """Splits samples over ranks and microbatches, and makes tensors of this rank's."""

    def __init__(
        self, policy: Policy, world: World, config: OptimiserConfig, token_ids: TokenIds, pixels: Pixels
    ) -> None:
        self.policy = policy
        self.world = world
        self.config = config
        self.token_ids = token_ids
        self.pixels = pixels
        self.byte_pixels: BytePatches | None = None
        """On a GPU: screenshots travel as bytes, and the GPU makes values of them."""
        takes_bytes = world.device.type != "cpu" and policy.visual is not None
        if takes_bytes and isinstance(pixels, ScreenshotCache):
            self.byte_pixels = pixels.as_bytes(world.device)

    def mine(self, samples: Sequence[Sample], microbatch_size: int = 0) -> list[list[Sample]]:
        """[microbatch][sample] of this rank; as many on every rank. `microbatch_size` 0 = the config's."""
        config, ranks = self.config, self.world.size
        if config.packing:
            shares = pack_over_ranks(
                samples,
                num_ranks=ranks,
                max_tokens=config.microbatch_tokens,
                max_patches=config.microbatch_patches,
            )
        else:
            size = microbatch_size or config.microbatch_size
            shares = split_over_ranks(samples, num_ranks=ranks, microbatch_size=size)
        return shares[self.world.rank]

    def on_device(self, shares: Sequence[list[Sample]]) -> Iterator[MicroBatch]:
        """Each on this rank's device; on a GPU the next one is made meanwhile."""
        if self.world.device.type == "cpu":
            yield from (self.moved(self.collate(rows)) for rows in shares)
            return
        for batch in prefetched(shares, lambda rows: self.collate(rows).pinned()):
            yield self.moved(batch)

    def moved(self, batch: MicroBatch) -> MicroBatch:
        """On this rank's device, its screenshots as values."""
        batch = batch.to(self.world.device)
        if self.byte_pixels is not None and batch.pixel_values is not None:
            batch.pixel_values = self.byte_pixels.values(batch.pixel_values)
        return batch

    def collate(self, rows: list[Sample]) -> MicroBatch:
        """One microbatch, on the host."""
        ids = self.token_ids
        batch = collate(
            rows,
            self.pixels if self.byte_pixels is None else self.byte_pixels.rows,
            pad_id=ids.pad,
            image_pad_id=ids.image_pad,
            merge_size=ids.merge_size,
            is_packed=self.config.packing,
            multiple=1 if self.world.device.type == "cpu" else LENGTH_MULTIPLE,
        )
        if batch.image_grid_thw is not None:
            grids = batch.image_grid_thw.tolist()
            batch.vision = self.policy.family.tower_inputs(self.policy.model, grids)
        return batch
