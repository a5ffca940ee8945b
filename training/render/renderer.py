"""Trajectories to tokens: the one pure module that the policy server and the trainer share.

Token-in-token-out: a sampled completion enters the trainer's sequence as the very token ids that the
engine sampled, in the very context in which it sampled them. Nothing sampled is ever decoded and encoded
again. The layout is Qwen's chat format:

    <|im_start|>user\\n <image> text <|im_end|>\\n <|im_start|>assistant\\n  COMPLETION<|im_end|> \\n ...
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from transformers import AutoTokenizer
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil, smart_resize

from training.actions.write.completion_text import completion_text
from training.contracts.config import ModelConfig, PromptConfig
from training.contracts.types import Action, Trajectory, Turn
from training.observations.turn_text import text_for
from training.render.context_fingerprint import fingerprint_of
from training.render.history_window import LEFT_OUT, Context, SeenTurn, first_told_turn, keeps_image
from training.render.plain_words import PlainWords, marker_id
from training.render.prompts import action_words, first_text, later_text, system_text, words_now
from training.render.rendered_sequence import Grid, RenderedSequence
from training.untrusted.pictures import open_picture


class Renderer:
    """Turns observations and completions into token ids and screenshots into patch values."""

    def __init__(
        self, tokenizer: Any, image_processor: Qwen2VLImageProcessorPil, prompt: PromptConfig
    ) -> None:
        self.tokenizer = tokenizer
        self.image_processor = image_processor
        self.prompt = prompt
        self.words = PlainWords(tokenizer)
        self.stop_id = marker_id(tokenizer, "<|im_end|>")
        self.pad_id = marker_id(tokenizer, "<|endoftext|>")
        self.image_pad_id = marker_id(tokenizer, "<|image_pad|>")
        self.banned_ids = [self.image_pad_id, marker_id(tokenizer, "<|video_pad|>")]
        """Never sampled: a pad in a completion would claim to be a part of an image."""
        self.merge: int = image_processor.merge_size
        self._im_start = marker_id(tokenizer, "<|im_start|>")
        self._level_table: np.ndarray | None = None
        self._vision = [marker_id(tokenizer, f"<|vision_{end}|>") for end in ("start", "end")]

    @classmethod
    def from_folder(cls, folder: str | Path, model: ModelConfig, prompt: PromptConfig) -> Renderer:
        """Load tokenizer and image settings of a checkpoint folder (no torchvision needed)."""
        size = {"shortest_edge": model.min_pixels, "longest_edge": model.max_pixels}
        processor = Qwen2VLImageProcessorPil.from_pretrained(folder, size=size)
        return cls(AutoTokenizer.from_pretrained(folder), processor, prompt)

    @cached_property
    def fingerprint(self) -> str:
        """What makes its token ids; see `training.contracts.context_fingerprint`."""
        turns = [SeenTurn(text=text, completion=(self.stop_id,)) for text in ("instruction", "result", "")]
        sample = self.tokenizer.decode(self.context(turns).token_ids)
        return fingerprint_of(self.tokenizer, self.image_processor, self.prompt, sample)

    def encode(self, text: str) -> list[int]:
        """Token ids of words from outside; markers such as <|im_end|> or <tool_call> stay plain words."""
        return self.words.encode(text)

    def decode(self, token_ids: list[int]) -> str:
        """The text of a completion without its stop token."""
        kept = token_ids[:-1] if token_ids and token_ids[-1] == self.stop_id else token_ids
        return self.tokenizer.decode(kept, clean_up_tokenization_spaces=False)

    def render_turn(
        self,
        turn_index: int,
        text: str,
        image_size: tuple[int, int] | None,
        *,
        instruction: str = "",
        previous_stopped: bool = True,
        is_left_out: bool = False,
        previous_actions: Sequence[str] = (),
    ) -> list[int]:
        """Exactly the tokens appended before completion `turn_index`; 0 is the first that is shown.

        `image_size` is (width, height) in pixels, None when the turn has no screenshot. `instruction`
        is the text of turn 0. `previous_stopped` is False when the last completion hit its length
        limit, so that its message must be closed here. `is_left_out` puts a note where the screenshot was.
        """
        ids: list[int] = []
        if turn_index == 0:
            system = system_text(self.prompt)
            ids += (
                self._message("system", self.words.encode_own(system)) + self.encode("\n") if system else []
            )
            words = first_text(self.prompt, text, previous_actions)
        else:
            ids += ([] if previous_stopped else [self.stop_id]) + self.encode("\n")
            words = later_text(self.prompt, text, instruction)
        content = self.image_tokens(image_size) if image_size else []
        content += self.encode(LEFT_OUT) if is_left_out else []
        content += self.encode(words)
        return ids + self._message("user", content) + self.encode("\n") + self.answer_header()

    def answer_header(self) -> list[int]:
        """The tokens that open the assistant's message."""
        return [self._im_start, *self.encode("assistant\n")]

    def question(self, text: str) -> list[int]:
        """A bare further question about the same screenshot (SFT's locator questions)."""
        return (
            self.encode("\n")
            + self._message("user", self.encode(text))
            + self.encode("\n")
            + self.answer_header()
        )

    def image_tokens(self, image_size: tuple[int, int]) -> list[int]:
        """Vision markers around one image pad per merged patch."""
        t, h, w = self.image_grid(image_size)
        return [self._vision[0], *[self.image_pad_id] * (t * h * w // self.merge**2), self._vision[1]]

    def _message(self, role: str, content: list[int]) -> list[int]:
        return [self._im_start, *self.encode(f"{role}\n"), *content, self.stop_id]

    def completion_ids(self, text: str) -> list[int]:
        """Token ids of a completion that a person or an oracle wrote, stop token included.

        A marker alone on its line is the model's own token, as a policy writes it around a call or a thought.
        """
        return [*self.words.encode_completion(text), self.stop_id]

    def context(self, turns: Sequence[SeenTurn]) -> Context:
        """Everything in front of the completion of the last of `turns`: the policy server's prompt and the
        trainer's sequence are both made here."""
        context, current = Context(), len(turns) - 1
        instruction = turns[0].text if turns else ""
        previous_stopped = True
        first = first_told_turn(current, self.prompt)
        earlier_words = [action_words(self.decode(list(turn.completion))) for turn in turns[:first]]
        for index, turn in enumerate(turns[first:], first):
            is_kept = keeps_image(index, current, self.prompt)
            size = turn.image_size if is_kept else None
            if size:
                context.images.append(index)
                context.grids.append(self.image_grid(size))
            task = instruction if first and index == first else ""
            context.token_ids += self.render_turn(
                index - first,
                words_now(self.prompt, turn.text, task, is_kept=is_kept),
                size,
                instruction=instruction,
                previous_stopped=previous_stopped,
                is_left_out=turn.image_size is not None and not is_kept,
                previous_actions=earlier_words,
            )
            context.token_ids += turn.completion
            previous_stopped = bool(turn.completion) and turn.completion[-1] == self.stop_id
        return context

    def render_trajectory(self, trajectory: Trajectory) -> RenderedSequence:
        """The whole trajectory as one sequence; see `RenderedSequence`.

        Raises ValueError for a turn that has neither a completion nor an action, and when its history was
        compressed, so that it is several sequences.
        """
        sequences = self.render_sequences(trajectory)
        if len(sequences) > 1:
            raise ValueError(f"trajectory {trajectory.trajectory_id}: its history makes several sequences")
        return sequences[0] if sequences else RenderedSequence()

    def render_sequences(self, trajectory: Trajectory) -> list[RenderedSequence]:
        """The trajectory as the trainer's sequences: one per distinct prefix, each completion in exactly one.

        A turn whose context only adds to the sequence so far goes on in it; a turn whose context was
        compressed anew starts the next sequence, with the earlier completions as part of its prompt.
        Raises ValueError for a turn that has neither a completion nor an action.
        """
        sequences: list[RenderedSequence] = []
        seen: list[SeenTurn] = []
        for index, turn in enumerate(trajectory.turns):
            seen.append(self._seen(turn))
            context = self.context(seen)
            have = sequences[-1].token_ids if sequences else []
            if not sequences or context.token_ids[: len(have)] != have:
                sequences.append(RenderedSequence())
            rendered = sequences[-1]
            rendered.append_prompt(context.token_ids[len(rendered.token_ids) :])
            rendered.images = [trajectory.turns[place].observation.sha256 for place in context.images]
            rendered.grids = context.grids
            ids, logprobs, versions = self._completion(turn, trajectory)
            if turn.is_context:
                rendered.append_prompt(ids)
            else:
                rendered.append_completion(ids, logprobs, versions)
                rendered.turns.append(index)
            seen[-1] = replace(seen[-1], completion=tuple(ids))
        return sequences

    def _seen(self, turn: Turn) -> SeenTurn:
        observation = turn.observation
        has_image = bool(observation.sha256) and self.prompt.shows_screen
        size = (observation.width, observation.height) if has_image else None
        return SeenTurn(text=text_for(observation, self.prompt), image_size=size)

    def _completion(
        self, turn: Turn, trajectory: Trajectory
    ) -> tuple[list[int], list[float], int | tuple[int, ...]]:
        """(token ids, behaviour logprobs, policy version: one for all tokens or one each) of one turn."""
        recorded = turn.completion
        if recorded is not None and recorded.token_ids:
            logprobs = list(recorded.behaviour_logprobs) or [math.nan] * len(recorded.token_ids)
            return list(recorded.token_ids), logprobs, recorded.policy_versions or recorded.policy_version
        if recorded is not None and recorded.text:
            ids = self.completion_ids(recorded.text)
        elif turn.action is not None:
            ids = self.completion_ids(self.action_text(turn.action, trajectory.task.screen))
        else:
            raise ValueError(
                f"trajectory {trajectory.trajectory_id}, turn {turn.index}: no completion and no action"
            )
        return ids, [math.nan] * len(ids), -1

    def action_text(self, action: Action, screen: tuple[int, int]) -> str:
        """What a policy of this prompt would write to do `action` on a screen of `screen` pixels."""
        return completion_text(action, screen, self.prompt, self.resized_size(screen))

    def resized_size(self, image_size: tuple[int, int]) -> tuple[int, int]:
        """(width, height) in pixels of a screenshot after the processor's resize."""
        _, h, w = self.image_grid(image_size)
        patch = self.image_processor.patch_size
        return w * patch, h * patch

    def image_grid(self, image_size: tuple[int, int]) -> Grid:
        """Patch grid (time, height, width) of a screenshot of (width, height) pixels."""
        width, height = image_size
        processor = self.image_processor
        resized_height, resized_width = smart_resize(
            height,
            width,
            factor=processor.patch_size * processor.merge_size,
            min_pixels=processor.size["shortest_edge"],
            max_pixels=processor.size["longest_edge"],
        )
        return 1, resized_height // processor.patch_size, resized_width // processor.patch_size

    def pixels(self, png: bytes) -> np.ndarray:
        """Patch values of a PNG. [t * h * w, channels * temporal * patch * patch], float32"""
        return self.patches(self.resized(png))

    def resized(self, png: bytes) -> np.ndarray:
        """The PNG as the vision tower's grid wants it. [height, width, 3], uint8"""
        with open_picture(png) as image:
            size = self.resized_size(image.size)
            return np.asarray(image.convert("RGB").resize(size, self.image_processor.resample))

    def patches(self, image: np.ndarray) -> np.ndarray:
        """Patch values of a resized image, bit for bit those of the image processor, several times faster."""
        processor = self.image_processor
        values = np.stack([levels[image[..., channel]] for channel, levels in enumerate(self.levels())])
        return processor.patchify(
            values, processor.patch_size, processor.merge_size, processor.temporal_patch_size
        )[0]

    def byte_rows(self, image: np.ndarray) -> np.ndarray:
        """`patches` of one frame before levels are looked up. [t * h * w, channels * patch * patch], uint8"""
        patch, merge = self.image_processor.patch_size, self.image_processor.merge_size
        height, width, channels = image.shape
        down, across = height // (patch * merge), width // (patch * merge)
        blocks = image.reshape(down, merge, patch, across, merge, patch, channels)
        return blocks.transpose(0, 3, 1, 4, 6, 2, 5).reshape(-1, channels * patch * patch)

    @property
    def frames_per_row(self) -> int:
        """Frames that one row of patch values spans; a screenshot shows the same in all of them."""
        return self.image_processor.temporal_patch_size

    def levels(self) -> np.ndarray:
        """What the processor makes of each of the 256 levels of each channel. [3, 256], float32"""
        if self._level_table is None:
            ramp = np.arange(256, dtype=np.uint8).reshape(16, 16)
            side = self.image_processor.patch_size * self.image_processor.merge_size
            tiled = np.pad(ramp, (0, side - 16))
            image = Image.fromarray(np.repeat(tiled[..., None], 3, axis=-1))
            rows = self.image_processor(images=[image], do_resize=False, return_tensors="np")["pixel_values"]
            temporal, patch = self.image_processor.temporal_patch_size, self.image_processor.patch_size
            first = rows[0].reshape(3, temporal, patch, patch)[:, 0, :16, :16]
            self._level_table = np.ascontiguousarray(first.reshape(3, 256))
        return self._level_table
