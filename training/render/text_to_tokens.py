"""Text to token ids: which of a tokenizer's added tokens may come of it.

Published tokenizers have two kinds of added tokens. Special ones (<|im_end|>, <|image_pad|>) never come of
text. Others (<tool_call>, <think>) are markers that a model writes itself: they come of what this product or
the experiment says in the model's own format, and never of what tasks, screens or people say.

Tokenizers of SentencePiece's kind put a blank before words. Our pieces stand inside of one long text, so they
get it only where the tokenizer itself puts it there: after a special token, or only before the first word.
"""

import json
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from tokenizers import Tokenizer

from training.planning.chat_layout import frame_of

BLANK = "▁"
"""A blank as SentencePiece writes it."""
MAX_ENCODED = 10_000
"""Texts whose tokens are remembered: instructions and headers come again and again."""


class PlainWords:
    """A tokenizer that takes markers for what their writer means by them."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.ids = {token.content: number for number, token in tokenizer.added_tokens_decoder.items()}
        """Of added tokens."""
        self._encoded: dict[tuple[str, bool, bool], list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """Token ids of words from outside: no added token comes of them."""
        return self._ids(text, is_own=not self.has_marker(text))

    def has_marker(self, text: str) -> bool:
        """Whether words from outside hold what the tokenizer has a token for."""
        return any(marker in text for marker in self.ids)

    def encode_own(self, text: str) -> list[int]:
        """Token ids of words of the experiment's own prompt: its markers are the model's, as published."""
        return self._ids(text, is_own=True)

    def _ids(self, text: str, *, is_own: bool, goes_on: bool = False) -> list[int]:
        """`goes_on`: the words before it, and no special token, stand right in front."""
        key = (text, is_own, goes_on)
        if key not in self._encoded:
            if len(self._encoded) >= MAX_ENCODED:
                self._encoded.clear()
            bare = self._bare if goes_on or self._only_first else None
            make = self._with_markers if is_own else self._without_markers
            self._encoded[key] = make(text, bare)
        return list(self._encoded[key])

    def frame(self, piece: str) -> list[int | str]:
        """A piece of the chat template: ids of its tokens, and the words between them."""
        return frame_of(piece, self.ids)

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
        ids: list[int] = []
        for place, part in enumerate(self._frame.split(text) if self._frame else [text]):
            is_own = place % 2 == 1 or not self.has_marker(part)
            # What opens the answer ends with words, as "assistant" and a line break.
            ids += self._ids(part, is_own=is_own, goes_on=not ids)
        return ids

    @cached_property
    def _frame(self) -> re.Pattern[str] | None:
        """Finds markers of the model's own format that stand alone on a line."""
        tokens = self.tokenizer.added_tokens_decoder.values()
        own = sorted(token.content for token in tokens if not token.special)
        return re.compile(rf"^({'|'.join(map(re.escape, own))})$", re.MULTILINE) if own else None

    @cached_property
    def _bare(self) -> Any:
        """The tokenizer that puts no blank before words; None where it never does."""
        backend = self.tokenizer.backend_tokenizer
        if not _begins_with_blank(backend.encode("x", add_special_tokens=False).tokens):
            return None
        bare = Tokenizer.from_str(json.dumps(_without_blanks(json.loads(backend.to_str()))))
        bare.encode_special_tokens = True
        return bare

    @cached_property
    def _only_first(self) -> bool:
        """Whether the blank comes before the first word of a text alone, and not after special tokens."""
        special = next(
            (one.content for one in self.tokenizer.added_tokens_decoder.values() if one.special), ""
        )
        if self._bare is None or not special:
            return False
        encoded = self.tokenizer.backend_tokenizer.encode(f"{special}x", add_special_tokens=False)
        return not _begins_with_blank(encoded.tokens[1:])

    def _with_markers(self, text: str, bare: Any = None) -> list[int]:
        """With those that are not special."""
        if bare is not None:
            return list(bare.encode(text, add_special_tokens=False).ids)
        encoded = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)
        return list(encoded["input_ids"])

    def _without_markers(self, text: str, bare: Any = None) -> list[int]:
        """What the tokenizer would make of `text` if it had no added tokens."""
        backend = self.tokenizer.backend_tokenizer if bare is None else bare
        if backend.normalizer is not None:
            text = backend.normalizer.normalize_str(text)
        pieces = [text]
        if backend.pre_tokenizer is not None:  # of SentencePiece's kind a tokenizer may have none
            pieces = [piece for piece, _ in backend.pre_tokenizer.pre_tokenize_str(text)]
        return [token.id for piece in pieces for token in backend.model.tokenize(piece)]


def _begins_with_blank(tokens: Sequence[str]) -> bool:
    return bool(tokens) and tokens[0].startswith(BLANK)


def _without_blanks(state: Any) -> Any:
    """A tokenizer's JSON without the steps that put a blank before words."""
    if isinstance(state, list):
        kept = [one for one in state if not (isinstance(one, dict) and one.get("type") == "Prepend")]
        return [_without_blanks(one) for one in kept]
    if not isinstance(state, dict):
        return state
    if state.get("type") == "Metaspace":
        return state | {"prepend_scheme": "never"}
    steps = ("normalizer", "normalizers", "pre_tokenizer", "pretokenizers")
    changed = {key: _without_blanks(value) if key in steps else value for key, value in state.items()}
    for key in steps:
        if isinstance(changed.get(key), dict) and changed[key].get("type") == "Prepend":
            changed[key] = None
    return changed
