"""Text to token ids: which of a tokenizer's added tokens may come of it.

Published tokenizers have two kinds of added tokens. Special ones (<|im_end|>, <|image_pad|>) never come of
text. Others (<tool_call>, <think>) are markers that a model writes itself: they come of what this product or
the experiment says in the model's own format, and never of what tasks, screens or people say.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

MAX_ENCODED = 10_000
"""Texts whose tokens are remembered: instructions and headers come again and again."""


def marker_id(tokenizer: Any, token: str) -> int:
    """Id of an added token. Raises ValueError that names it when the tokenizer has no such token."""
    found = tokenizer.convert_tokens_to_ids(token)
    # An unknown token is answered by the id of the unknown token, where there is one.
    if not isinstance(found, int) or tokenizer.convert_ids_to_tokens(found) != token:
        raise ValueError(
            f"the tokenizer has no token {token}, which this model's prompts are made of: set model.path to "
            "a folder with the tokenizer that was published with the model"
        )
    return found


class PlainWords:
    """A tokenizer that takes markers for what their writer means by them."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self._encoded: dict[tuple[str, bool], list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """Token ids of words from outside: no added token comes of them."""
        return self._ids(text, is_own=not self.has_marker(text))

    def has_marker(self, text: str) -> bool:
        """Whether words from outside hold what the tokenizer has a token for."""
        return any(marker in text for marker in self._markers)

    def encode_own(self, text: str) -> list[int]:
        """Token ids of words of the experiment's own prompt: its markers are the model's, as published."""
        return self._ids(text, is_own=True)

    def _ids(self, text: str, *, is_own: bool) -> list[int]:
        if (text, is_own) not in self._encoded:
            if len(self._encoded) >= MAX_ENCODED:
                self._encoded.clear()
            self._encoded[text, is_own] = self._with_markers(text) if is_own else self._without_markers(text)
        return list(self._encoded[text, is_own])

    def frame(self, text: str) -> list[int | str]:
        """A piece of a chat template: ids of its tokens, and the words between them.

        Raises ValueError for a marker that the tokenizer has no token for.
        """
        parts = self._any_marker.split(text)
        return [
            marker_id(self.tokenizer, part) if place % 2 else part for place, part in enumerate(parts) if part
        ]

    def encode_parts(self, parts: Sequence[int | str], *, is_own: bool = False) -> list[int]:
        """Token ids of ids and words; words side by side are cut as the one text that they are."""
        encode, ids, words = self.encode_own if is_own else self.encode, list[int](), ""
        for part in parts:
            if isinstance(part, str):
                words += part
                continue
            ids += [*encode(words), part]
            words = ""
        return ids + encode(words)

    def encode_completion(self, text: str) -> list[int]:
        """Token ids of a completion: a marker alone on its line is the model's own, others are words."""
        if self._frame is None:
            return self.encode(text)
        ids: list[int] = []
        for place, part in enumerate(self._frame.split(text)):
            ids += self.encode_own(part) if place % 2 else self.encode(part)
        return ids

    @cached_property
    def _markers(self) -> tuple[str, ...]:
        return tuple(token.content for token in self.tokenizer.added_tokens_decoder.values())

    @cached_property
    def _any_marker(self) -> re.Pattern[str]:
        """Finds what is a marker in a template, or looks like one that the tokenizer lacks."""
        longest_first = sorted(self._markers, key=len, reverse=True)
        return re.compile("(" + "|".join([*map(re.escape, longest_first), r"<\|[^<>|]+\|>"]) + ")")

    @cached_property
    def _frame(self) -> re.Pattern[str] | None:
        """Finds markers of the model's own format that stand alone on a line."""
        tokens = self.tokenizer.added_tokens_decoder.values()
        own = sorted(token.content for token in tokens if not token.special)
        return re.compile(rf"^({'|'.join(map(re.escape, own))})$", re.MULTILINE) if own else None

    def _with_markers(self, text: str) -> list[int]:
        """With those that are not special."""
        encoded = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)
        return list(encoded["input_ids"])

    def _without_markers(self, text: str) -> list[int]:
        """What the tokenizer would make of `text` if it had no added tokens."""
        backend = self.tokenizer.backend_tokenizer
        if backend.normalizer is not None:
            text = backend.normalizer.normalize_str(text)
        pieces = [text]
        if backend.pre_tokenizer is not None:  # of SentencePiece's kind a tokenizer may have none
            pieces = [piece for piece, _ in backend.pre_tokenizer.pre_tokenize_str(text)]
        return [token.id for piece in pieces for token in backend.model.tokenize(piece)]
