"""Whether a model folder's tokenizer has the tokens of its family's prompts, read without torch."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from training.planning.chat_layout import layout_of, message_end
from training.planning.model_families import ModelFamily
from training.planning.model_json import read_object, text_part

VISION_TOKENS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
CONFIG_IDS = {f"{token.strip('<|>').replace('_pad', '')}_token_id": token for token in VISION_TOKENS}
"""Keys of config.json that name the ids of `VISION_TOKENS`."""
SETTINGS, TEMPLATE, OLD_TEMPLATE = "tokenizer_config.json", "chat_template.jinja", "chat_template.json"
"""Of the last one only processors know."""
VOCABULARIES = (("vocab.json", "merges.txt"), ("tokenizer.model",))
"""Files that transformers makes a tokenizer of where there is no tokenizer.json."""

REMEDY = "take the tokenizer that was published with the model"


@dataclass(frozen=True, slots=True)
class Known:
    """What a tokenizer.json says."""

    added: dict[str, int]
    largest: int
    """Id; -1 = it names none."""


def missing_tokens(folder: Path, family: ModelFamily) -> str | None:
    """What the folder's tokenizer lacks, in words; None = nothing. Raises ValueError and OSError."""
    published_stop_ids(folder)
    file, path = folder / "tokenizer.json", folder / SETTINGS
    settings = read_object(path) if path.is_file() else {}
    known = _known_tokens(file, file.stat().st_mtime_ns) if file.is_file() else None
    source, template = chat_template(folder)
    try:
        layout = layout_of(template, **_special_tokens(settings))
        if known is not None:
            more = settings.get("added_tokens_decoder", {}).items()
            message_end(layout, known.added | {token["content"]: int(number) for number, token in more})
    except ValueError as error:
        return f"{source}: {error}"
    if known is None:
        if any(all((folder / name).is_file() for name in names) for names in VOCABULARIES):
            return None
        return f"{folder} has no tokenizer.json: copy the tokenizer's files beside config.json"
    if lacking := [token for token in VISION_TOKENS if family.has_vision and token not in known.added]:
        return (
            f"{file} has no token {', '.join(lacking)}, which prompts of {family.label} are made of: {REMEDY}"
        )
    return _other_ids(folder, family, known)


def _other_ids(folder: Path, family: ModelFamily, known: Known) -> str | None:
    """Where the tokenizer and config.json name other ids."""
    config = read_object(folder / "config.json")
    rows = text_part(config).get("vocab_size")
    if isinstance(rows, int) and known.largest >= rows:
        return (
            f"{folder / 'tokenizer.json'} has a token of id {known.largest}, and vocab_size in config.json "
            f"is {rows}: {REMEDY}"
        )
    for key, token in CONFIG_IDS.items() if family.has_vision else ():
        named = config.get(key)
        if named is not None and named != known.added[token]:
            return (
                f"{folder / 'config.json'} has {key} {named}, and {token} is {known.added[token]} in "
                f"tokenizer.json: {REMEDY}"
            )
    return None


def chat_template(folder: Path) -> tuple[Path, str]:
    """The file with the chat template, and the template; "" where there is none. Raises ValueError."""
    if (path := folder / TEMPLATE).is_file():
        return path, path.read_text(encoding="utf-8")
    for path in (folder / SETTINGS, folder / OLD_TEMPLATE):
        found = read_object(path).get("chat_template") if path.is_file() else None
        if isinstance(found, list):  # several by name
            found = next((one["template"] for one in found if one["name"] == "default"), None)
            if found is None:
                raise ValueError(f"{path} has several chat templates: name the one to train with default")
        if found:
            return path, str(found)
    return folder / SETTINGS, ""


def _special_tokens(settings: dict[str, Any]) -> dict[str, str]:
    """The tokens that a chat template may name, such as bos_token."""
    tokens = {name: token for name, token in settings.items() if name.endswith("_token") and token}
    return {
        name: token["content"] if isinstance(token, dict) else str(token) for name, token in tokens.items()
    }


@lru_cache(maxsize=8)
def _known_tokens(file: Path, _changed: int) -> Known:
    """The file is some 10 MB, and pages ask at every change of a form."""
    tokenizer = read_object(file)
    try:
        added = {str(token["content"]): int(token["id"]) for token in tokenizer["added_tokens"]}
        vocabulary = tokenizer["model"]["vocab"]
        ids = vocabulary.values() if isinstance(vocabulary, dict) else range(len(vocabulary))
        return Known(added, max((*ids, *added.values()), default=-1))
    except (KeyError, TypeError) as error:
        raise ValueError(f"{file} is no tokenizer's file: it lacks {error}") from error


def published_stop_ids(folder: str | Path) -> list[int]:
    """Tokens that end a completion by the folder's generation_config.json, where it has one.

    Raises ValueError for one that cannot be read.
    """
    path = Path(folder) / "generation_config.json"
    if not path.is_file():
        return []
    found = read_object(path).get("eos_token_id")
    ids = found if isinstance(found, list) else [] if found is None else [found]
    if not all(type(one) is int for one in ids):
        raise ValueError(f"{path}: eos_token_id is {found!r}, and not an id or a list of them")
    return ids
