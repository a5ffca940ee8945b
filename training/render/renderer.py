"""Trajectories to tokens: the one pure module that the policy server and the trainer share.

Token-in-token-out: a sampled completion enters the trainer's sequence as the very token ids that the
engine sampled, in the very context in which it sampled them. Nothing that is trained on is ever decoded and
encoded again. The layout is that of the model's own chat template, as Qwen's:

    <|im_start|>user\\n <image> text <|im_end|>\\n <|im_start|>assistant\\n  COMPLETION<|im_end|> \\n ...
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from training.actions.dialects.registry import find_dialect
from training.actions.several_actions import turn_text
from training.actions.write_completion import completion_text
from training.contracts.config import ModelConfig, PromptConfig
from training.contracts.types import Action, Trajectory, Turn
from training.observations.turn_text import text_for
from training.planning.chat_layout import THOUGHT_END, layout_of, marker_id, message_end
from training.planning.model_families import family_of_folder
from training.planning.model_tokens import chat_template, published_stop_ids
from training.render.context_fingerprint import fingerprint_of
from training.render.history_window import LEFT_OUT, Context, SeenTurn, first_told_turn, keeps_image
from training.render.pictures import Pictures
from training.render.prompts import action_words, first_text, later_text, system_text, words_now
from training.render.published_layout import published_context
from training.render.rendered_sequence import RenderedSequence
from training.render.text_to_tokens import PlainWords

NO_TOKEN = -1
"""In place of the image pad's id where the model sees no pictures: no token has it."""


class Renderer(Pictures):
    """Turns observations and completions into token ids and screenshots into patch values."""

    def __init__(
        self,
        tokenizer: Any,
        image_processor: Qwen2VLImageProcessorPil | None,
        prompt: PromptConfig,
        stop_ids: Sequence[int] = (),
    ) -> None:
        super().__init__(image_processor)
        self.tokenizer = tokenizer
        self.prompt = prompt
        self.own_layout = find_dialect(prompt.dialect).layout if prompt.style == "tool-call" else None
        self.words = PlainWords(tokenizer)
        self.layout = layout_of(tokenizer.chat_template, **tokenizer.special_tokens_map)
        self.stop_id = message_end(self.layout, self.words.ids)
        self.stop_ids = (self.stop_id, *(stop for stop in stop_ids if stop != self.stop_id))
        """Tokens that end a completion; the first one also closes messages."""
        self.pad_id: int = self.stop_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        self.image_pad_id, self._vision = NO_TOKEN, [NO_TOKEN, NO_TOKEN]
        self.banned_ids: list[int] = []
        """Never sampled: a pad in a completion would claim to be a part of an image."""
        if self.sees:
            self.image_pad_id = marker_id("<|image_pad|>", self.words.ids)
            self.banned_ids = [self.image_pad_id, marker_id("<|video_pad|>", self.words.ids)]
            self._vision = [marker_id(f"<|vision_{end}|>", self.words.ids) for end in ("start", "end")]

    @classmethod
    def from_folder(cls, folder: str | Path, model: ModelConfig, prompt: PromptConfig) -> Renderer:
        """Load tokenizer, stop tokens and image settings of a checkpoint folder (no torchvision needed)."""
        processor = None
        if family_of_folder(folder).has_vision:
            size = {"shortest_edge": model.min_pixels, "longest_edge": model.max_pixels}
            processor = Qwen2VLImageProcessorPil.from_pretrained(folder, size=size)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        tokenizer.chat_template = chat_template(Path(folder))[1] or None
        return cls(tokenizer, processor, prompt, published_stop_ids(folder))

    @cached_property
    def fingerprint(self) -> str:
        """What makes its token ids; see `training.contracts.context_fingerprint`."""
        turns = [SeenTurn(text=text, completion=(self.stop_id,)) for text in ("instruction", "result", "")]
        sample = self.tokenizer.decode(self.context(turns).token_ids)
        return fingerprint_of(self.tokenizer, self._image_processor, self.prompt, sample)

    def encode(self, text: str) -> list[int]:
        """Token ids of words from outside; markers such as <|im_end|> or <tool_call> stay plain words."""
        return self.words.encode(text)

    def decode(self, token_ids: list[int]) -> str:
        """The text of a completion without its stop token."""
        kept = token_ids[:-1] if token_ids and token_ids[-1] in self.stop_ids else token_ids
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
        is_past: bool = False,
    ) -> list[int]:
        """Exactly the tokens appended before completion `turn_index`; 0 is the first that is shown.

        `image_size` is (width, height) in pixels, None when the turn has no screenshot. `instruction`
        is the text of turn 0. `previous_stopped` is False when the last completion hit its length
        limit, so that its message must be closed here. `is_left_out` puts a note where the screenshot was.
        `is_past`: its completion is no more the one to be sampled.
        """
        if turn_index == 0:
            ids, parts = self.first_frame()
            words = first_text(self.prompt, text, previous_actions)
        else:
            ids, parts = [], self._next_frame(previous_stopped=previous_stopped)
            words = later_text(self.prompt, text, instruction)
        words = (LEFT_OUT if is_left_out else "") + words
        if image_size:
            parts += self.image_tokens(image_size)
        if self.layout.strips:
            words = words.rstrip() if image_size else words.strip()
        return ids + self.words.encode_parts([*parts, words, *self._answer_frame(is_past=is_past)])

    def first_frame(self) -> tuple[list[int], list[int | str]]:
        """The system message and what opens the user's first one."""
        system = system_text(self.prompt)
        if not system:
            return [], self.words.frame(self.layout.opening)
        system = system.strip() if self.layout.strips else system
        parts = [*self.words.frame(self.layout.system), system]
        return self.words.encode_parts(parts, is_own=True), self.words.frame(self.layout.after_system)

    def _next_frame(self, *, previous_stopped: bool) -> list[int | str]:
        """What closes the assistant's message and opens the user's next one."""
        return self.words.frame(self.layout.after_answer)[1 if previous_stopped else 0 :]

    def _answer_frame(self, *, is_past: bool) -> list[int | str]:
        """What closes the user's message and opens the assistant's."""
        is_bare = is_past and not self.layout.keeps_thoughts
        return self.words.frame(self.layout.past_answer if is_bare else self.layout.answer)

    def question(self, text: str) -> list[int]:
        """A bare further question about the same screenshot (SFT's locator questions)."""
        frame = self._next_frame(previous_stopped=True)
        return self.words.encode_parts([*frame, text, *self._answer_frame(is_past=False)])

    def image_tokens(self, image_size: tuple[int, int]) -> list[int]:
        """Vision markers around one image pad per merged patch."""
        t, h, w = self.image_grid(image_size)
        return [self._vision[0], *[self.image_pad_id] * (t * h * w // self.merge**2), self._vision[1]]

    def completion_ids(self, text: str) -> list[int]:
        """Token ids of a completion that a person or an oracle wrote, stop token included.

        A marker alone on its line is the model's own token, as a policy writes it around a call or a thought.
        """
        return [*self.words.encode_completion(text), self.stop_id]

    def past_completion(self, completion: Sequence[int]) -> list[int]:
        """An earlier completion as later contexts hold it: as sampled, or without its thought.

        A template that drops thoughts writes the rest anew, so that is encoded again here; nothing of it
        is trained on in such a context. A thought that was never closed leaves as a whole.
        """
        if self.layout.keeps_thoughts:
            return list(completion)
        text = self.decode(list(completion))
        _, closing, rest = text.rpartition(THOUGHT_END)
        if not closing:
            if not self.layout.opens_thought:
                return list(completion)
            rest = ""
        rest = rest.strip() if self.layout.strips else rest.lstrip("\n")
        has_stopped = bool(completion) and completion[-1] in self.stop_ids
        return [*self.words.encode_completion(rest), *([self.stop_id] if has_stopped else [])]

    def context(self, turns: Sequence[SeenTurn]) -> Context:
        """Everything in front of the completion of the last of `turns`: the policy server's prompt and the
        trainer's sequence are both made here."""
        if self.own_layout and turns:
            return published_context(self, self.own_layout, turns)
        context, current = Context(), len(turns) - 1
        instruction = turns[0].text if turns else ""
        previous_stopped = True
        first = first_told_turn(current, self.prompt)
        earlier = [self.decode(list(turn.completion)) for turn in turns[:first]]
        for index, turn in enumerate(turns[first:], first):
            is_kept = keeps_image(index, current, self.prompt)
            size = turn.image_size if is_kept else None
            if size:
                context.images.append(index)
                context.grids.append(self.image_grid(size))
            is_past = index < current
            task = instruction if first and index == first else ""
            context.token_ids += self.render_turn(
                index - first,
                words_now(self.prompt, turn.text, task, is_kept=is_kept),
                size,
                instruction=instruction,
                previous_stopped=previous_stopped,
                is_left_out=turn.image_size is not None and not is_kept,
                previous_actions=[action_words(said, self.prompt) for said in earlier],
                is_past=is_past,
            )
            completion = self.past_completion(turn.completion) if is_past else turn.completion
            context.token_ids += completion
            previous_stopped = bool(completion) and completion[-1] == self.stop_id
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
            ids = self.completion_ids(turn_text(self, turn, trajectory.task.screen))
        else:
            raise ValueError(
                f"trajectory {trajectory.trajectory_id}, turn {turn.index}: no completion and no action"
            )
        return ids, [math.nan] * len(ids), -1

    def action_text(self, action: Action, screen: tuple[int, int]) -> str:
        """What a policy of this prompt would write to do `action` on a screen of `screen` pixels."""
        return completion_text(action, screen, self.prompt, self.resized_size(screen))
