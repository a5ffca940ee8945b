"""Dimensions of published models: each is a row that `benchmarks.gpu.model_configs` makes a config of."""

from __future__ import annotations

from dataclasses import dataclass

VOCABULARY = 151_936
"""Rows of the embedding of Qwen3 and Qwen3-VL."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """Dimensions of one published model; what is left out is as in Qwen3-VL."""

    family: str = "qwen3_vl"
    """The `model_type`."""
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int = 8
    head_width: int = 128
    is_tied: bool = True
    """One matrix is embedding and head."""
    vision_depth: int = 24
    vision_hidden: int = 1024
    vision_intermediate: int = 4096
    vision_heads: int = 16
    deepstack: tuple[int, ...] = (5, 11, 17)
    vision_matrices: int = 2
    """Of an MLP of the tower; 3 = gated."""
    patch: int = 16
    """Pixels of a side."""
    whole_blocks: tuple[int, ...] = ()
    """Blocks of the tower that attend to whole images where the others have windows; none = all do."""
    vocabulary: int = VOCABULARY
    num_ordinary: int = 151_643
    """Ids below this one are ordinary tokens."""
    full_every: int = 1
    """One text block of this number has full attention, the others a recurrent state."""
    linear_heads: int = 0
    """Of keys and of values of a block with a recurrent state."""
    linear_width: int = 128

    @property
    def sees(self) -> bool:
        return self.vision_depth > 0


SIZES = {
    "2b": Size(hidden=2048, intermediate=6144, layers=28, heads=16),
    "4b": Size(hidden=2560, intermediate=9728, layers=36, heads=32),
    "8b": Size(
        hidden=4096, intermediate=12288, layers=36, heads=32, is_tied=False,
        vision_depth=27, vision_hidden=1152, vision_intermediate=4304, deepstack=(8, 16, 24),
    ),
    "32b": Size(
        hidden=5120, intermediate=25600, layers=64, heads=64, is_tied=False,
        vision_depth=27, vision_hidden=1152, vision_intermediate=4304, deepstack=(8, 16, 24),
    ),
    "small": Size(
        hidden=512, intermediate=1536, layers=4, heads=4, kv_heads=2,
        vision_depth=4, vision_hidden=256, vision_intermediate=1024, vision_heads=4, deepstack=(0, 1, 2),
    ),
    "tiny": Size(
        hidden=64, intermediate=128, layers=4, heads=4, kv_heads=2, head_width=16,
        vision_depth=4, vision_hidden=32, vision_intermediate=64, vision_heads=2, deepstack=(0, 1, 2),
    ),
    "qwen3-4b": Size(
        family="qwen3", hidden=2560, intermediate=9728, layers=36, heads=32, vision_depth=0, deepstack=(),
    ),
    "qwen2.5-vl-7b": Size(
        family="qwen2_5_vl", hidden=3584, intermediate=18944, layers=28, heads=28, kv_heads=4, is_tied=False,
        vision_depth=32, vision_hidden=1280, vision_intermediate=3420, vision_matrices=3, deepstack=(),
        patch=14, whole_blocks=(7, 15, 23, 31), vocabulary=152_064,
    ),
    "qwen3.5-0.8b": Size(
        family="qwen3_5", hidden=1024, intermediate=3584, layers=24, heads=8, kv_heads=2, head_width=256,
        vision_depth=12, vision_hidden=768, vision_intermediate=3072, vision_heads=12, deepstack=(),
        vocabulary=248_320, num_ordinary=248_044, full_every=4, linear_heads=16,
    ),
}  # fmt: skip
"""`tiny` has the same parts and the same vocabulary: for trying a benchmark on a CPU. `small` has the heads
of the true sizes, which is what kernels depend on: for runs on a GPU that are about something else."""

OTHER_FAMILIES = {"qwen3": "qwen3-4b", "qwen2_5_vl": "qwen2.5-vl-7b", "qwen3_5": "qwen3.5-0.8b"}
"""By `model_type`: the size that stands for a family beside Qwen3-VL."""
