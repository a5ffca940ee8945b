"""Where a model's messages begin and end, read off the chat template that its tokenizer carries.

A conversation with known words is laid out by the template; what stands between them is the frame of every
prompt. So a fine-tuned model keeps the frame that it was trained with, a default system message and the
opening of a thought included, and no family needs a frame written down here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from training.untrusted.chat_templates import BadTemplate, rendered

SYSTEM, USER, ANSWER, LATER = (f"deskhand-{name}-words" for name in ("system", "user", "answer", "later"))
THOUGHT = "deskhand-thought-words"
THOUGHT_END = "</think>"
DAY = "26 Jul 2024"
"""What Llama's templates are given as today, as those without a clock have it: another day would be another
prompt, so a run would differ from itself after midnight, and from what it recorded for replay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatLayout:
    """What stands between the words of a conversation; the defaults are plain ChatML."""

    opening: str = "<|im_start|>user\n"
    """Before the first words where the experiment has no system message; may hold the model's own."""
    system: str = "<|im_start|>system\n"
    after_system: str = "<|im_end|>\n<|im_start|>user\n"
    answer: str = "<|im_end|>\n<|im_start|>assistant\n"
    """Between the user's words and the completion that is to be sampled."""
    past_answer: str = "<|im_end|>\n<|im_start|>assistant\n"
    """The same, before an answer whose thought has left the context."""
    after_answer: str = "<|im_end|>\n<|im_start|>user\n"
    keeps_thoughts: bool = True
    """Whether what earlier answers thought stays in the context."""
    strips: bool = False
    """Whether blanks and line breaks around words go."""

    @property
    def opens_thought(self) -> bool:
        """Whether every completion begins inside a thought."""
        return "<think>" in self.answer and THOUGHT_END not in self.answer


@lru_cache(maxsize=32)
def layout_of(template: str | None, **special: str) -> ChatLayout:
    """The layout of a chat template, which may name tokens such as bos_token. Raises ValueError."""
    if not template:
        return ChatLayout()
    padded, thinking = f"\n{USER}\n", f"<think>\n{THOUGHT}\n{THOUGHT_END}\n\n{ANSWER}"
    talks = (
        [("system", SYSTEM), ("user", USER), ("assistant", ANSWER), ("user", LATER)],
        [("user", USER)],
        [("user", USER), ("assistant", thinking), ("user", LATER)],
        [("user", padded)],
    )
    try:
        whole, short, thought, stripped = rendered(template, special | {"date_string": DAY}, talks)
    except BadTemplate as error:
        raise _not_readable(str(error)) from error
    system, after_system, past_answer, after_answer, answer = _between(whole, SYSTEM, USER, ANSWER, LATER)
    opening, _ = _between(short, USER)
    return ChatLayout(
        opening=opening,
        system=system,
        after_system=after_system,
        answer=answer,
        past_answer=past_answer,
        after_answer=after_answer,
        keeps_thoughts=THOUGHT in thought,
        strips=padded not in stripped,
    )


def _between(text: str, *words: str) -> list[str]:
    """The pieces around `words`, which stand in `text` once each and in this order."""
    pieces = []
    for word in words:
        before, found, text = text.partition(word)
        if not found or word in text:
            raise _not_readable(f"it does not lay out {word!r} once, in order")
        pieces.append(before)
    return [*pieces, text]


def message_end(layout: ChatLayout, ids: Mapping[str, int]) -> int:
    """The token that closes every message, by the ids of the added tokens. Raises ValueError without one."""
    pieces = (layout.after_system, layout.answer, layout.past_answer, layout.after_answer)
    (end, *others) = {frame_of(piece, ids)[0] for piece in pieces}
    for piece in (layout.opening, layout.system):
        frame_of(piece, ids)
    if others or isinstance(end, str):
        raise _not_readable("it does not end every message with one token")
    return end


def frame_of(piece: str, ids: Mapping[str, int]) -> list[int | str]:
    """A piece of a layout: ids of its tokens, and the words between them. Raises ValueError."""
    parts = _any_marker(tuple(ids)).split(piece)
    return [marker_id(part, ids) if place % 2 else part for place, part in enumerate(parts) if part]


def marker_id(token: str, ids: Mapping[str, int]) -> int:
    """Id of an added token. Raises ValueError that names one that the tokenizer has not."""
    if token not in ids:
        raise ValueError(
            f"the tokenizer has no token {token}, which this model's prompts are made of: set model.path to "
            "a folder with the tokenizer that was published with the model"
        )
    return ids[token]


@lru_cache(maxsize=32)
def _any_marker(markers: tuple[str, ...]) -> re.Pattern[str]:
    """Finds what is a marker in a template, or looks like one that the tokenizer lacks."""
    longest_first = sorted(markers, key=len, reverse=True)
    return re.compile("(" + "|".join([*map(re.escape, longest_first), r"<\|[^<>|]+\|>"]) + ")")


def _not_readable(reason: str) -> ValueError:
    return ValueError(
        f"the chat template of the model's tokenizer cannot be used: {reason}; choose a model whose template "
        "takes a system message and turns of user and assistant, and ends all with one token"
    )
