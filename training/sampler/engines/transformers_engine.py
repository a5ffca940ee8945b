"""The engine `transformers`: batched sampling with a KV cache, in this process.

Every trajectory keeps the keys and values of its context between turns, so a new turn costs only its own
tokens. The cache (and with it everything computed by older weights) is dropped at a weight sync, so that
what is sampled is always exactly what a teacher-forced pass of the current weights gives.

One batch, by columns:   [ cached context, padded | new prompt, right-padded | generated tokens ... ]
Padding is masked out and never stored. Legend: B rows, H heads, D head width, V vocabulary.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import PreTrainedModel

from training.batch.rope_positions import rope_positions
from training.contracts.turn_trace import TurnPart
from training.model.banned_tokens import without_tokens
from training.model.families.registry import family_at, family_of
from training.model.fp32_logits import use_fp32_logits
from training.model.lora import ADAPTER_CONFIG, take_adapter
from training.render.renderer import Renderer
from training.sampler.engine import (
    EngineBuild,
    EngineSequence,
    SampledCompletion,
    SamplingSettings,
    TopTokens,
)
from training.sampler.engines.decoding import Decoding, PlainDecoding, joined
from training.sampler.engines.kept_context import KeptContext, kept_row, stacked
from training.sampler.engines.lean_decoding import LeanDecoding, lean_weights

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def load_model(folder: str | Path, dtype: str = "float32", *, fp32_logits: bool = True) -> PreTrainedModel:
    """A model on this machine's best device. Raises ValueError when weights are missing or surplus."""
    # With the loading info it returns a pair, which its annotation leaves out.
    family = family_at(folder)
    loaded: Any = family.auto_class.from_pretrained(
        folder, dtype=DTYPES[dtype], output_loading_info=True, trust_remote_code=False
    )
    model, info = loaded
    wrong = {
        key: sorted(info[key])[:3]
        for key in ("missing_keys", "unexpected_keys", "mismatched_keys")
        if info[key]
    }
    if wrong:
        raise ValueError(f"{folder}: the weights do not fit its config.json: {wrong}")
    family.use_quick_paths(model, torch.device("cpu"))
    if fp32_logits:
        use_fp32_logits(model)
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()


def vocabulary(model: PreTrainedModel) -> int:
    """Token ids that a model has."""
    return int(family_of(model).text(model).config.vocab_size)


class TransformersEngine:
    """See the module's docstring; implements `training.sampler.engine.Engine`."""

    def __init__(
        self,
        folder: str | Path,
        renderer: Renderer,
        *,
        dtype: str = "float32",
        fp32_logits: bool = True,
        seed: int = 0,
    ) -> None:
        self.renderer = renderer
        self.dtype, self.fp32_logits = dtype, fp32_logits
        self.policy_version = 0
        self.model = load_model(folder, dtype, fp32_logits=fp32_logits)
        self.family = family_of(self.model)
        self.device = self.model.device
        self.lean = lean_weights(self.model)
        self.generator = torch.Generator(self.device).manual_seed(seed)

    def build(self) -> EngineBuild:
        decoding = "plain" if self.lean is None else "lean"
        return EngineBuild(
            engine="transformers",
            version=f"{transformers.__version__} (torch {torch.__version__})",
            kernels=f"{self.model.config._attn_implementation} on {self.device.type}, {decoding} decoding",
            precision=f"{self.dtype}{', fp32 logits' if self.fp32_logits else ''}",
        )

    def load_weights(self, folder: Path, policy_version: int) -> None:
        """Swap the model, or its adapter; contexts of older versions are recomputed at their next use."""
        if (folder / ADAPTER_CONFIG).is_file():
            take_adapter(self.model, folder)
            self.lean, self.policy_version = None, policy_version
            return
        model = load_model(folder, self.dtype, fp32_logits=self.fp32_logits)
        if vocabulary(model) != vocabulary(self.model):
            raise ValueError(f"{folder}: another vocabulary than the model that was loaded at the start")
        self.model, self.lean, self.policy_version = model, lean_weights(model), policy_version

    @torch.inference_mode()
    def generate(
        self, sequences: list[EngineSequence], samplings: list[SamplingSettings]
    ) -> list[SampledCompletion]:
        """Generate one completion per sequence; appends its tokens and keeps the context."""
        started = time.perf_counter()
        batch = self._read(sequences)
        read = time.perf_counter()
        temperatures = torch.tensor([s.temperature for s in samplings], device=self.device)
        limits = [sampling.max_tokens for sampling in samplings]
        generated: list[list[int]] = [[] for _ in sequences]
        logprobs: list[list[float]] = [[] for _ in sequences]
        top: list[list[TopTokens]] = [[] for _ in sequences]
        num_top = max(sampling.top_logprobs for sampling in samplings)
        live = [True] * len(sequences)
        while True:
            all_logprobs = self._token_logprobs(batch.logits, temperatures)
            tokens = self._sample_tokens(all_logprobs, temperatures)
            token_logprobs = all_logprobs.gather(-1, tokens[:, None]).squeeze(-1)
            if num_top:
                _add_top(top, all_logprobs, samplings, live)
            for row, (token, logprob) in enumerate(
                zip(tokens.tolist(), token_logprobs.tolist(), strict=True)
            ):
                if live[row]:
                    generated[row].append(token)
                    logprobs[row].append(logprob)
                    live[row] = token not in self.renderer.stop_ids and len(generated[row]) < limits[row]
            if not any(live):
                break
            batch.advance(tokens, live)
        for row, sequence in enumerate(sequences):
            sequence.token_ids += generated[row]
        self._remember(sequences, batch)
        decode_ms = 1000 * (time.perf_counter() - read)
        return [
            SampledCompletion(
                token_ids=tokens,
                logprobs=row_logprobs,
                finish_reason="stop" if tokens[-1] in self.renderer.stop_ids else "length",
                policy_version=self.policy_version,
                spent_ms={TurnPart.PREFILL: 1000 * (read - started), TurnPart.DECODE: decode_ms},
                top=row_top,
            )
            for tokens, row_logprobs, row_top in zip(generated, logprobs, top, strict=True)
        ]

    @torch.inference_mode()
    def score(self, sequence: EngineSequence, start: int) -> list[float]:
        """Logprobs at temperature 1 of the tokens from `start` on, by the decoding path. Keeps no context."""
        forced = sequence.token_ids[start:]
        prompt = EngineSequence(
            sequence_id=sequence.sequence_id,
            token_ids=sequence.token_ids[:start],
            pixels=sequence.pixels,
            grids=sequence.grids,
        )
        batch = self._read([prompt])
        logprobs = []
        for token in forced:
            logits = without_tokens(batch.logits[0].float(), self.renderer.banned_ids)
            logprobs.append(logits.log_softmax(-1)[token].item())
            batch.advance(torch.tensor([token], device=self.device), [True])
        return logprobs

    def _token_logprobs(self, logits: torch.Tensor, temperatures: torch.Tensor) -> torch.Tensor:
        """Of the whole vocabulary, in fp32; temperature 0 counts as 1. [B, V]"""
        logits = without_tokens(logits.float(), self.renderer.banned_ids)
        return (logits / temperatures.masked_fill(temperatures == 0, 1.0)[:, None]).log_softmax(-1)

    def _sample_tokens(self, logprobs: torch.Tensor, temperatures: torch.Tensor) -> torch.Tensor:
        """One token per row; temperature 0 is greedy. [B]"""
        # One random number per row, where torch.multinomial takes one per token of the vocabulary.
        below = logprobs.exp().cumsum(-1, dtype=torch.float64)
        number = torch.rand(len(below), 1, dtype=torch.float64, device=self.device, generator=self.generator)
        generated = torch.searchsorted(below, number * below[:, -1:], right=True).squeeze(-1)
        return torch.where(temperatures == 0, logprobs.argmax(-1), generated)

    def _read(self, sequences: list[EngineSequence]) -> Decoding:
        """One by one where a state would go on with padding."""
        if not self.family.keeps_state:
            return self._prefill(sequences)
        parts = [self._prefill([sequence]) for sequence in sequences]
        return joined(parts)

    def _prefill(self, sequences: list[EngineSequence]) -> Decoding:
        """Run the part of every sequence that has no keys and values yet."""
        contexts = [self._context(sequence) for sequence in sequences]
        starts = [context.length if context else 0 for context in contexts]
        new = [sequence.token_ids[start:] for sequence, start in zip(sequences, starts, strict=True)]
        cached, longest = max(starts), max(map(len, new))
        input_ids = torch.full((len(new), longest), self.renderer.pad_id)
        positions = torch.zeros((3, len(new), longest), dtype=torch.long)
        mask = torch.zeros((len(new), cached + longest), dtype=torch.long)
        next_positions = torch.zeros(len(new), dtype=torch.long)
        for row, (sequence, start, ids) in enumerate(zip(sequences, starts, new, strict=True)):
            rows = rope_positions(
                sequence.token_ids, sequence.grids, self.renderer.image_pad_id, self.renderer.merge
            )
            input_ids[row, : len(ids)] = torch.tensor(ids)
            positions[:, row, : len(ids)] = torch.from_numpy(rows[:, start:])
            next_positions[row] = int(rows.max()) + 1
            mask[row, :start] = 1
            mask[row, cached : cached + len(ids)] = 1
        mask = mask.to(self.device)
        cache = stacked(self.model.config, contexts, cached)
        outputs = self.model.model(
            input_ids=input_ids.to(self.device),
            position_ids=self.family.positions(positions).to(self.device),
            attention_mask=mask,
            past_key_values=cache,
            use_cache=True,
            **self._images(sequences, starts),
        )
        last = torch.tensor([len(ids) - 1 for ids in new], device=self.device)
        each = torch.arange(len(new), device=self.device)
        logits = self.model.lm_head(outputs.last_hidden_state[each, last])
        if self.lean is not None:
            return LeanDecoding(self.lean, cache, mask, next_positions, logits)
        place = self.family.positions(next_positions.view(1, -1, 1).expand(3, -1, 1))
        return PlainDecoding(self.model, cache, mask, place.to(self.device), logits)

    def _context(self, sequence: EngineSequence) -> KeptContext | None:
        """The stored context when the current weights made it."""
        context = sequence.cache
        if isinstance(context, KeptContext) and context.policy_version == self.policy_version:
            return context
        return None

    def _images(self, sequences: list[EngineSequence], starts: list[int]) -> dict[str, torch.Tensor]:
        """Pixels of the images behind the cached part. An image is never cut by the border."""
        pixels: list[np.ndarray] = []
        grids = []
        for sequence, start in zip(sequences, starts, strict=True):
            pads, merged = 0, self.renderer.merge**2
            seen = sum(token == self.renderer.image_pad_id for token in sequence.token_ids[:start])
            for image, (t, h, w) in zip(sequence.pixels, sequence.grids, strict=True):
                if pads >= seen:
                    pixels.append(image)
                    grids.append((t, h, w))
                pads += t * h * w // merged
        if not grids:
            return {}
        return {
            "pixel_values": torch.from_numpy(np.concatenate(pixels)).to(self.device),
            "image_grid_thw": torch.tensor(grids, device=self.device),
        }

    def _remember(self, sequences: list[EngineSequence], batch: Decoding) -> None:
        """Keep every row's real columns. The last generated token was never fed, so it is not among them."""
        layers = batch.layers()
        for row, sequence in enumerate(sequences):
            kept = kept_row(layers, batch.mask, row, self.policy_version)
            assert kept.length == len(sequence.token_ids) - 1, "all but the last generated token are cached"
            sequence.cache = kept


def _add_top(
    top: list[list[TopTokens]], logprobs: torch.Tensor, samplings: list[SamplingSettings], live: list[bool]
) -> None:
    """Note the likeliest tokens of every row that is still generated. logprobs: [B, V]"""
    values, ids = logprobs.topk(max(sampling.top_logprobs for sampling in samplings))
    for row, (row_ids, row_values) in enumerate(zip(ids.tolist(), values.tolist(), strict=True)):
        if live[row] and (count := samplings[row].top_logprobs):
            top[row].append(list(zip(row_ids[:count], row_values[:count], strict=True)))
