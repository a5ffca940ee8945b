"""Tokenizers as they are published, made on this machine out of what packages carry; kept below var/.

Qwen's vocabulary comes from the package dashscope (Apache-2.0), the chat templates from trl, both installed
for tests alone.
"""

from __future__ import annotations

import base64
import functools
import os
import tempfile
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

from tokenizers.pre_tokenizers import ByteLevel
from transformers import AddedToken, AutoTokenizer, Qwen2Tokenizer

from testing.paths import REPOSITORY

SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>"),
    *("<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>"),
    *("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
)
MARKERS = (
    *("<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>"),
    *("<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>"),
)
"""Added tokens that are not special: the model's own format."""


def chat_template(name: str) -> str:
    """A published chat template by trl's name of it, such as qwen3_vl."""
    return Path(distribution("trl").locate_file(f"trl/chat_templates/{name}.jinja")).read_text()


@functools.cache
def qwen_folder() -> Path:
    """The folder of Qwen's tokenizer of 151 669 tokens, made once per machine (some 15 s)."""
    folder = REPOSITORY / "var" / "tokenizers" / f"qwen-{version('dashscope')}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as name:
            _make_qwen().save_pretrained(name)
            try:
                os.rename(name, folder)
            except OSError:  # another process was quicker
                assert folder.is_dir()
            os.makedirs(name, exist_ok=True)
    return folder


@functools.cache
def qwen_tokenizer() -> Any:
    """Qwen's tokenizer; it has no chat template until a test gives it one."""
    return AutoTokenizer.from_pretrained(qwen_folder())


def _make_qwen() -> Qwen2Tokenizer:
    source = Path(distribution("dashscope").locate_file("dashscope/resources/qwen.tiktoken"))
    lines = (line.split() for line in source.read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    letters = dict(zip(_byte_order(), sorted(ByteLevel.alphabet()), strict=True))

    def spelt(token: bytes) -> str:
        return "".join(letters[byte] for byte in token)

    # Its annotation says pairs of one string each; what it takes are pairs of tokens.
    merges: Any = [tuple(map(spelt, last_pair(token, ranks))) for token in ranks if len(token) > 1]
    tokenizer = Qwen2Tokenizer(
        vocab={spelt(token): rank for token, rank in ranks.items()},
        merges=merges,
        unk_token=SPECIAL[0],
        eos_token=SPECIAL[0],
        pad_token=SPECIAL[0],
    )
    added = [AddedToken(token, special=token in SPECIAL, normalized=False) for token in SPECIAL + MARKERS]
    tokenizer.add_tokens(added)
    tokenizer.eos_token = "<|im_end|>"
    return tokenizer


def last_pair(token: bytes, ranks: dict[bytes, int]) -> tuple[bytes, bytes]:
    """The two tokens that byte-pair encoding joins last to make `token`."""
    parts = [token[place : place + 1] for place in range(len(token))]
    while len(parts) > 2:
        pairs = [ranks.get(left + right, len(ranks)) for left, right in zip(parts, parts[1:], strict=False)]
        place = min(range(len(pairs)), key=pairs.__getitem__)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return parts[0], parts[1]


def _byte_order() -> list[int]:
    """Bytes in the order of the letters that stand for them: printable ones first, as themselves."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return shown + [byte for byte in range(256) if byte not in shown]
