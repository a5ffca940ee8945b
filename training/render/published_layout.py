"""Contexts in the layout of an agent's own, for the dialects that have one."""

from collections.abc import Sequence
from typing import Protocol

from training.actions.dialects.contract import Layout, Message, Shown
from training.contracts.config import PromptConfig
from training.planning.chat_layout import ChatLayout
from training.render.history_window import Context, SeenTurn, keeps_image
from training.render.prompts import action_words, split_observation, task_words
from training.render.text_to_tokens import PlainWords


class Tokens(Protocol):
    """What a renderer makes tokens with."""

    prompt: PromptConfig
    words: PlainWords
    layout: ChatLayout
    stop_id: int

    def first_frame(self) -> tuple[list[int], list[int | str]]: ...
    def image_grid(self, image_size: tuple[int, int]) -> tuple[int, int, int]: ...
    def image_tokens(self, image_size: tuple[int, int]) -> list[int]: ...
    def decode(self, token_ids: list[int]) -> str: ...
    def past_completion(self, completion: Sequence[int]) -> list[int]: ...


def published_context(renderer: Tokens, layout: Layout, turns: Sequence[SeenTurn]) -> Context:
    """Everything in front of the completion of the last of `turns`."""
    prompt, current, context = renderer.prompt, len(turns) - 1, Context()
    shown: list[Shown] = []
    for index, turn in enumerate(turns):
        is_kept = keeps_image(index, current, prompt)
        if turn.image_size and is_kept:
            context.images.append(index)
            context.grids.append(renderer.image_grid(turn.image_size))
        shown.append(
            Shown(
                picture=index if turn.image_size and is_kept else None,
                read=split_observation(prompt, turn.text)[1] if is_kept else "",
                words=action_words(renderer.decode(list(turn.completion)), prompt),
                completion=tuple(renderer.past_completion(turn.completion)),
            )
        )
    instruction = split_observation(prompt, turns[0].text)[0]
    messages = layout(lambda listed: task_words(prompt, instruction, listed), shown)
    foreign = [instruction, *(text for turn in shown for text in (turn.read, turn.words))]
    # Markers of published words are the model's own, but not where others have written some.
    is_own = not any(map(renderer.words.has_marker, foreign))
    context.token_ids = _laid_out(renderer, messages, [turn.image_size for turn in turns], is_own=is_own)
    context.token_ids += turns[-1].completion
    return context


def _laid_out(
    renderer: Tokens, messages: Sequence[Message], sizes: Sequence[tuple[int, int] | None], *, is_own: bool
) -> list[int]:
    """The system message, `messages`, and what opens the answer."""
    ids, frame = renderer.first_frame()
    layout, is_open = renderer.layout, True
    for number, message in enumerate(messages):
        if number or message.role == "assistant":
            piece = layout.after_answer if message.role == "user" else layout.past_answer
            frame = renderer.words.frame(piece)[0 if is_open else 1 :]
        is_open = True
        for part in message.parts:
            if isinstance(part, tuple):
                ids += [*renderer.words.encode_parts(frame), *part]
                frame, is_open = [], part[-1:] != (renderer.stop_id,)
            elif isinstance(part, int):
                frame += renderer.image_tokens(sizes[part] or (0, 0))
            else:
                frame.append(part)
        ids += renderer.words.encode_parts(frame, is_own=is_own)
    return ids + renderer.words.encode_parts(renderer.words.frame(layout.answer)[0 if is_open else 1 :])
