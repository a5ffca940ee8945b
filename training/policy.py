"""The policy: a causal vision-language model that scores recorded tokens.

Logits are made at completion positions only, in fp32, divided by the sampling temperature;
a vocabulary of 151 000 never meets a prompt token. The wrapper is the FSDP2 root, so that
backbone and head can be called one after the other inside one forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from training.batching import MicroBatch
from training.model_inputs import without_tokens

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


def load_model(folder: str | Path, device: torch.device) -> nn.Module:
    """A transformers vision-language model from a checkpoint folder, fp32 and in training mode."""
    from transformers import AutoModelForImageTextToText
    from transformers.utils import logging

    logging.disable_progress_bar()  # its carriage returns make one endless line of the log
    model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).train()
    if device.type == "cpu":
        from training.cpu_paths import use_cpu_paths

        use_cpu_paths(model)
    return model.to(device)


class Policy(nn.Module):
    """Scores the completion tokens of microbatches with a transformers VLM."""

    def __init__(
        self,
        model: nn.Module,
        *,
        temperature: float,
        banned_ids: Sequence[int] = (),
        freeze_vision: bool = False,
    ) -> None:
        super().__init__()
        self.model = model
        self.temperature = temperature
        self.banned_ids = list(banned_ids)
        if freeze_vision:
            self.model.model.visual.requires_grad_(False)

    def forward(self, batch: MicroBatch) -> TokenScores:
        """Logprob and entropy of every completion token."""
        hidden = self._hidden(batch)
        chosen = batch.loss_mask[:, 1:] > 0
        before, targets = _scored_places(batch, chosen)
        logprobs, entropy = self._score(hidden.flatten(0, 1)[before], batch.input_ids.flatten()[targets])
        # The zero keeps every parameter in the graph when a filler has no token to score.
        anchor = hidden[:, :1].float().sum() * 0.0
        return TokenScores(
            logprobs=_scatter(logprobs, chosen) + anchor,
            entropy=_scatter(entropy, chosen),
        )

    def _hidden(self, batch: MicroBatch) -> torch.Tensor:
        """Last hidden states, [B, T, hidden]; each distinct screenshot meets the vision tower once."""
        extra: dict[str, Any] = {}
        if batch.bounds is not None:
            extra |= {"cu_seq_lens_q": batch.bounds, "cu_seq_lens_k": batch.bounds}
            extra |= {"max_length_q": batch.longest, "max_length_k": batch.longest}
        if batch.pixel_values is not None:
            assert batch.image_grid_thw is not None
            assert batch.image_index is not None
            features = self.model.model.get_image_features(
                batch.pixel_values, batch.image_grid_thw, return_dict=True
            )
            extra["mm_encoder_outputs"] = {"image": _spread(features, batch.image_index)}
            extra["image_grid_thw"] = batch.image_grid_thw[batch.image_index]
        outputs = self.model.model(
            input_ids=batch.input_ids,
            position_ids=batch.position_ids,
            mm_token_type_ids=batch.mm_token_type_ids,
            use_cache=False,
            **extra,
        )
        return outputs.last_hidden_state

    def _score(self, hidden: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if len(targets) <= TOKENS_PER_CHUNK:
            return self._score_chunk(hidden, targets)
        pieces = zip(hidden.split(TOKENS_PER_CHUNK), targets.split(TOKENS_PER_CHUNK), strict=True)
        parts = [checkpoint(self._score_chunk, *piece, use_reentrant=False) for piece in pieces]
        return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])

    def _score_chunk(self, hidden: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = without_tokens(self.model.lm_head(hidden).float(), self.banned_ids) / self.temperature
        logprobs = torch.log_softmax(logits, dim=-1)
        entropy = -(logprobs.exp() * logprobs).sum(dim=-1)
        return logprobs.gather(-1, targets[:, None])[:, 0], entropy


def _spread(features: Any, index: torch.Tensor) -> Any:
    """Vision features of the unique screenshots, repeated for every slot that shows one."""
    slots = index.tolist()
    features.pooler_output = tuple(features.pooler_output[i] for i in slots)
    features.deepstack_features = [tuple(level[i] for i in slots) for level in features.deepstack_features]
    return features


def _scored_places(batch: MicroBatch, chosen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Where, in the flattened sequences, the scored tokens and the hidden states before them are. [N], [N]

    `chosen` [B, T - 1] marks the scored tokens, shifted by one as targets are.
    """
    rows, columns = chosen.nonzero(as_tuple=True)
    starts = torch.arange(len(chosen), device=rows.device) * batch.loss_mask.shape[1]
    if batch.bounds is not None:
        starts = batch.bounds[:-1].long()
    before = starts[rows] + columns
    return before, before + 1


def _scatter(values: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Values of the chosen positions [B, T-1] back at their tokens' positions, [B, T]."""
    out = torch.zeros(chosen.shape, dtype=values.dtype, device=values.device)
    out = out.masked_scatter(chosen, values)
    return torch.nn.functional.pad(out, (1, 0))
