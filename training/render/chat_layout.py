"""Where a model's messages begin and end, read off the chat template that its tokenizer carries.

A conversation with known words is laid out by the template; what stands between them is the frame of every
prompt. So a fine-tuned model keeps the frame that it was trained with, a default system message and the
opening of a thought included, and no family needs a frame written down here.
"""

from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateError

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


def layout_of(tokenizer: Any) -> ChatLayout:
    """The layout of a tokenizer's own template; plain ChatML for one that has none. Raises ValueError."""
    if not tokenizer.chat_template:
        return ChatLayout()
    whole = _laid_out(tokenizer, ("system", SYSTEM), ("user", USER), ("assistant", ANSWER), ("user", LATER))
    system, after_system, past_answer, after_answer, answer = _between(whole, SYSTEM, USER, ANSWER, LATER)
    opening, _ = _between(_laid_out(tokenizer, ("user", USER)), USER)
    padded = f"\n{USER}\n"
    thinking = f"<think>\n{THOUGHT}\n{THOUGHT_END}\n\n{ANSWER}"
    return ChatLayout(
        opening=opening,
        system=system,
        after_system=after_system,
        answer=answer,
        past_answer=past_answer,
        after_answer=after_answer,
        keeps_thoughts=THOUGHT
        in _laid_out(tokenizer, ("user", USER), ("assistant", thinking), ("user", LATER)),
        strips=padded not in _laid_out(tokenizer, ("user", padded)),
    )


def _laid_out(tokenizer: Any, *messages: tuple[str, str]) -> str:
    rows = [{"role": role, "content": words} for role, words in messages]
    try:
        text = tokenizer.apply_chat_template(
            rows, tokenize=False, add_generation_prompt=True, date_string=DAY
        )
    except (TemplateError, TypeError, OverflowError, RecursionError) as error:
        # TypeError: a template that takes no plain words; the last two: one that would never end.
        raise _not_readable(str(error)) from error
    return str(text)


def _between(text: str, *words: str) -> list[str]:
    """The pieces around `words`, which stand in `text` once each and in this order."""
    pieces = []
    for word in words:
        before, found, text = text.partition(word)
        if not found or word in text:
            raise _not_readable(f"it does not lay out {word!r} once, in order")
        pieces.append(before)
    return [*pieces, text]


def _not_readable(reason: str) -> ValueError:
    return ValueError(
        f"the chat template of the model's tokenizer cannot be used: {reason}; choose a model whose template "
        "takes a system message and turns of user and assistant"
    )
