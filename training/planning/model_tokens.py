"""Whether a model folder's tokenizer has the tokens of its family's prompts, read without torch."""

import json
from functools import lru_cache
from pathlib import Path

from training.planning.model_families import ModelFamily

CHAT_TOKENS = ("<|im_start|>", "<|im_end|>")
"""Of prompts for a tokenizer that carries no chat template."""
VISION_TOKENS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
TEMPLATES = ("chat_template.jinja", "chat_template.json")


def missing_tokens(folder: Path, family: ModelFamily) -> str | None:
    """What the folder's tokenizer lacks, in words; None = nothing. Raises ValueError and OSError."""
    file = folder / "tokenizer.json"
    settings = folder / "tokenizer_config.json"
    if not file.is_file():
        if settings.is_file():  # transformers makes it of vocab.json and merges.txt
            return None
        return f"{folder} has no tokenizer.json: copy the tokenizer's files beside config.json"
    expected: tuple[str, ...] = VISION_TOKENS if family.has_vision else ()
    if not _has_template(folder, settings):
        expected += CHAT_TOKENS
    added = _added_tokens(file, file.stat().st_mtime_ns)
    lacking = [token for token in expected if token not in added]
    if not lacking:
        return None
    return (
        f"{file} has no token {', '.join(lacking)}, which prompts of {family.label} are made of: take the "
        "tokenizer that was published with the model"
    )


def _has_template(folder: Path, settings: Path) -> bool:
    if any((folder / name).is_file() for name in TEMPLATES):
        return True
    return settings.is_file() and bool(json.loads(settings.read_text()).get("chat_template"))


@lru_cache(maxsize=8)
def _added_tokens(file: Path, _changed: int) -> frozenset[str]:
    """The file is some 10 MB, and pages ask at every change of a form."""
    return frozenset(token["content"] for token in json.loads(file.read_text())["added_tokens"])


def published_stop_ids(folder: str | Path) -> list[int]:
    """Tokens that end a completion by the folder's generation_config.json, where it has one."""
    try:
        settings = json.loads((Path(folder) / "generation_config.json").read_text())
    except FileNotFoundError:
        return []
    found = settings.get("eos_token_id")
    return [found] if isinstance(found, int) else list(found or [])
