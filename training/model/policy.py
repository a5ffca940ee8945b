"""The policy: a causal language model, perhaps with a vision tower, that scores recorded tokens.

Logits are made at completion positions only, in fp32, divided by the sampling temperature;
a vocabulary of 151 000 never meets a prompt token. The wrapper is the FSDP2 root, so that
backbone and head can be called one after the other inside one forward.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from training.batch.micro_batch import MicroBatch
from training.model.banned_tokens import BANNED_LOGIT
from training.model.families.registry import family_at, family_of
from training.model.fp32_logits import compute_logits
from training.model.packed_attention import Bounds

TOKENS_PER_CHUNK = 2048
"""Completion tokens per head call: 2048 x 151936 fp32 logits are 1.2 GB."""


class TokenScores(NamedTuple):
    """What the policy says about the tokens of a microbatch; [B, T], 0 where the loss mask is 0.

    A tuple, because FSDP2 finds the tensors to hook only in containers that torch can flatten.
    """

    logprobs: torch.Tensor
    """Nats at the sampling temperature, fp32, with gradient."""
    entropy: torch.Tensor
    """Of the whole next-token distribution, nats, fp32, with gradient."""
    likelihood_logprobs: torch.Tensor | None = None
    """At temperature 1, for likelihood terms; None = `logprobs` are, or nothing needs them."""


def load_model(folder: str | Path, device: torch.device) -> nn.Module:
    """A transformers model from a checkpoint folder, fp32 and in training mode."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # its carriage returns make one endless line of the log
    model = family_at(folder).auto_class.from_pretrained(folder, dtype=torch.float32, trust_remote_code=False)
    return prepared(model.train(), device)


def prepared(model: nn.Module, device: torch.device) -> nn.Module:
    """`model` on `device`, its vision tower on the paths that are fast there."""
    family_of(model).use_quick_paths(model, device)
    return model.to(device)


class Policy(nn.Module):
    """Scores the completion tokens of microbatches with a transformers model."""

    banned_ids: torch.Tensor

    def __init__(
        self,
        model: nn.Module,
        *,
        temperature: float,
        banned_ids: Sequence[int] = (),
        freeze_vision: bool = False,
        fp32_logits: bool = True,
    ) -> None:
        super().__init__()
        self.model: Any = model
        self.fp32_logits = fp32_logits
        self.temperature = temperature
        # Sharding moves it to the weights' device, as all buffers.
        self.register_buffer("banned_ids", torch.tensor(list(banned_ids), dtype=torch.long), persistent=False)
        self.family = family_of(model)
        self.family.prepare_training(model)
        if freeze_vision and self.visual is not None:
            self.visual.requires_grad_(False)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def vocabulary(self) -> int:
        """Token ids that the model has."""
        return int(self.family.text(self.model).config.vocab_size)

    @property
    def visual(self) -> Any:
        """The vision tower; None of a text model."""
        return self.family.tower(self.model)

    def forward(self, batch: MicroBatch) -> TokenScores:
        """Logprob and entropy of every completion token."""
        assert batch.indices is not None, "collate says where the completion tokens stand"
        hidden = self._hidden(batch).flatten(0, 1)
        before = hidden.index_select(0, batch.indices.scored)
        scored = self._score(before, batch.indices.targets, at_one=batch.has_likelihood)
        # The zero keeps every parameter in the graph when a filler has no token to score.
        anchor = hidden[:1].float().sum() * 0.0
        return TokenScores(*(_spread(values, batch) + anchor for values in scored))

    @contextmanager
    def at_temperature(self, temperature: float) -> Iterator[None]:
        """Score at this temperature meanwhile."""
        usual, self.temperature = self.temperature, temperature
        try:
            yield
        finally:
            self.temperature = usual

    def _hidden(self, batch: MicroBatch) -> torch.Tensor:
        """Last hidden states, [B, T, hidden]; each distinct screenshot meets the vision tower once.

        Instead of transformers' own forward of the whole model, which searches for image pads on the device.
        """
        text = self.family.text(self.model)
        embeddings = text.embed_tokens(batch.input_ids)
        extra: dict[str, Any] = {}
        if batch.bounds is not None:
            extra["packed"] = Bounds(batch.bounds, batch.lengths)
        if batch.pixel_values is not None:
            embeddings, added = self._see(batch, embeddings)
            extra |= {"deepstack_visual_embeds": added} if added else {}
        positions = self.family.positions(batch.position_ids)
        outputs = text(inputs_embeds=embeddings, position_ids=positions, use_cache=False, **extra)
        return outputs.last_hidden_state

    def _see(self, batch: MicroBatch, embeddings: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Embeddings with the screenshots in them, and what the first blocks add. [B, T, hidden] each"""
        indices = batch.indices
        assert indices is not None
        assert indices.image_pads is not None
        assert batch.pixel_values is not None
        seen = self.family.see(self.visual, batch.pixel_values, batch.image_grid_thw, batch.vision or {})
        flat = embeddings.flatten(0, 1)
        levels = []
        for level in seen:
            rows = level if indices.image_rows is None else level.index_select(0, indices.image_rows)
            levels.append(rows.to(flat.dtype))
        embedded = flat.index_copy(0, indices.image_pads, levels[0])
        nothing = torch.zeros_like(flat)
        added = [nothing.index_copy(0, indices.image_pads, level) for level in levels[1:]]
        return embedded.view_as(embeddings), [level.view_as(embeddings) for level in added]

    def _score(
        self, hidden: torch.Tensor, targets: torch.Tensor, *, at_one: bool
    ) -> tuple[torch.Tensor, ...]:
        """Logprobs and entropies, and with `at_one` the logprobs at temperature 1 where that is another."""
        score = partial(self._score_chunk, at_one=at_one and self.temperature != 1)
        if len(targets) <= TOKENS_PER_CHUNK:
            return score(hidden, targets)
        pieces = zip(hidden.split(TOKENS_PER_CHUNK), targets.split(TOKENS_PER_CHUNK), strict=True)
        parts = [checkpoint(score, *piece, use_reentrant=False) for piece in pieces]
        return tuple(torch.cat(values) for values in zip(*parts, strict=True))

    def _score_chunk(
        self, hidden: torch.Tensor, targets: torch.Tensor, *, at_one: bool
    ) -> tuple[torch.Tensor, ...]:
        plain = compute_logits(hidden, self.model.lm_head, in_fp32=self.fp32_logits)
        plain = plain.index_fill(-1, self.banned_ids, BANNED_LOGIT)
        logits = plain / self.temperature
        logprobs = torch.log_softmax(logits, dim=-1)
        entropy = -(logprobs.exp() * logprobs).sum(dim=-1)
        found = (logprobs.gather(-1, targets[:, None])[:, 0], entropy)
        if not at_one:
            return found
        return *found, plain.gather(-1, targets[:, None])[:, 0] - plain.logsumexp(dim=-1)


def _spread(values: torch.Tensor, batch: MicroBatch) -> torch.Tensor:
    """Values of the completion tokens [N] at their tokens' places, 0 elsewhere. [B, T]"""
    assert batch.indices is not None
    out = torch.zeros(batch.loss_mask.numel(), dtype=values.dtype, device=values.device)
    return out.index_copy(0, batch.indices.cells, values).view_as(batch.loss_mask)
