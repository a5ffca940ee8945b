"""The shape of a model, read from its config.json."""

from dataclasses import dataclass
from typing import Any

from training.planning.model_json import (
    STATE,
    block_kinds,
    is_tied,
    num_deepstack,
    num_experts,
    text_part,
    vision_part,
)

MERGED = 4
"""Patches per image token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Sizes of a model, as far as its memory depends on them; a model without eyes has no vision layers."""

    width: int
    inner: int
    num_layers: int
    attended: int
    """Heads times head width."""
    cached: int
    """Key-value heads times head width."""
    vocabulary: int
    is_tied: bool
    experts: int = 0
    """Of each block, each `expert_inner` wide; 0 = dense."""
    expert_inner: int = 0
    experts_per_token: int = 0
    vision_width: int = 0
    vision_inner: int = 0
    vision_layers: int = 0
    vision_matrices: int = 2
    """Of an MLP of the vision tower; 3 = gated."""
    patch_values: int = 1536
    """Numbers of one row of patches."""
    num_deepstack: int = 0
    state_layers: int = 0
    """Of `num_layers`: blocks that keep a state instead of keys and values."""
    state_keys: int = 0
    """Heads times head width of their keys."""
    state_values: int = 0
    state_heads: int = 0
    """Of values."""
    shared_inner: int = 0
    """Inner width of the expert that every token meets."""
    num_counted: int = 0
    """Weights that the files really hold; 0 = not known, the shape is trusted."""

    @property
    def block(self) -> int:
        """Weights of one text block with full attention, which has a gate beside blocks that keep a state."""
        attended = (3 if self.state_layers else 2) * self.attended
        return self.width * (attended + 2 * self.cached + self._mlp)

    @property
    def state_block(self) -> int:
        """Weights of one text block that keeps a state."""
        mixed = 2 * self.state_keys + self.state_values
        return self.width * (mixed + 2 * self.state_values + 2 * self.state_heads + self._mlp) + 4 * mixed

    @property
    def _mlp(self) -> int:
        """Weights for each number of a token's."""
        shared = 3 * self.shared_inner + (1 if self.shared_inner else 0)
        return self.experts * (3 * self.expert_inner + 1) + shared if self.experts else 3 * self.inner

    @property
    def blocks(self) -> int:
        """Weights of all text blocks."""
        return (self.num_layers - self.state_layers) * self.block + self.state_layers * self.state_block

    @property
    def inner_at_work(self) -> int:
        """Inner width that one token meets: the MLP's, or that of all its experts."""
        return self.experts_per_token * self.expert_inner + self.shared_inner if self.experts else self.inner

    @property
    def root(self) -> int:
        """Weights of embedding and head."""
        return self.vocabulary * self.width * (1 if self.is_tied else 2)

    @property
    def vision(self) -> int:
        """Weights of the vision tower with its mergers."""
        mlp = self.vision_matrices * self.vision_width * self.vision_inner
        blocks = self.vision_layers * (4 * self.vision_width**2 + mlp)
        wide = MERGED * self.vision_width
        mergers = (1 + self.num_deepstack) * (wide * wide + wide * self.width)
        return blocks + self.patch_values * self.vision_width + mergers if self.vision_layers else 0

    @property
    def num_parameters(self) -> int:
        return self.num_counted or self.blocks + self.root + self.vision


def shape_of(config: dict[str, Any], num_counted: int = 0) -> ModelShape:
    """The shape in a checkpoint's config.json (transformers' names)."""
    text, vision = text_part(config), vision_part(config)
    keys, values = (int(text.get(f"linear_num_{side}_heads", 0)) for side in ("key", "value"))
    width = int(text.get("hidden_size", 0))
    heads = int(text.get("num_attention_heads", 0))
    head_width = int(text.get("head_dim") or (width // heads if heads else 0))
    return ModelShape(
        width=width,
        inner=int(text.get("intermediate_size", 0)),
        num_layers=int(text.get("num_hidden_layers", 0)),
        attended=heads * head_width or width,
        cached=int(text.get("num_key_value_heads") or heads) * head_width or width,
        vocabulary=int(text.get("vocab_size", 0)),
        is_tied=is_tied(config),
        experts=num_experts(text),
        expert_inner=int(text.get("moe_intermediate_size", 0)),
        experts_per_token=int(text.get("num_experts_per_tok", 0)),
        vision_width=int(vision.get("hidden_size", 0)),
        vision_inner=int(vision.get("intermediate_size", 0)),
        vision_layers=int(vision.get("depth", 0)),
        vision_matrices=3 if "fullatt_block_indexes" in vision else 2,
        patch_values=3 * int(vision.get("temporal_patch_size", 2)) * int(vision.get("patch_size", 16)) ** 2,
        num_deepstack=num_deepstack(config),
        state_layers=block_kinds(config).count(STATE),
        state_keys=keys * int(text.get("linear_key_head_dim", 0)),
        state_values=values * int(text.get("linear_value_head_dim", 0)),
        state_heads=values,
        shared_inner=int(text.get("shared_expert_intermediate_size", 0)),
        num_counted=num_counted,
    )
