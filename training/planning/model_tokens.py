"""Whether a model folder's tokenizer has the tokens of its family's prompts, read without torch."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from training.planning.model_families import ModelFamily
from training.planning.model_json import read_object, text_part

CHAT_TOKENS = ("<|im_start|>", "<|im_end|>")
"""Of prompts for a tokenizer that carries no chat template."""
VISION_TOKENS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
CONFIG_IDS = {f"{token.strip('<|>').replace('_pad', '')}_token_id": token for token in VISION_TOKENS}
"""Keys of config.json that name the ids of `VISION_TOKENS`."""
TEMPLATE, OLD_TEMPLATE = "chat_template.jinja", "chat_template.json"
"""Beside the tokenizer's own settings; of the second only processors know."""
FOREIGN_TURNS = ("[/INST]", "<｜Assistant｜>")
"""In chat templates that end what the user says with another token than the answers."""
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
    file = folder / "tokenizer.json"
    path = folder / "tokenizer_config.json"
    settings = read_object(path) if path.is_file() else {}
    published_stop_ids(folder)
    template = _template(folder, settings) or processors_template(folder) or ""
    if foreign := [words for words in FOREIGN_TURNS if words in template]:
        return (
            f"the chat template of {folder.name} ends what the user says with {foreign[0]} and the answers "
            "with another token; take a model whose template ends all messages with one token, as ChatML does"
        )
    if not file.is_file():
        if any(all((folder / name).is_file() for name in names) for names in VOCABULARIES):
            return None
        return f"{folder} has no tokenizer.json: copy the tokenizer's files beside config.json"
    config = read_object(folder / "config.json")
    known = _known_tokens(file, file.stat().st_mtime_ns)
    expected: tuple[str, ...] = VISION_TOKENS if family.has_vision else ()
    if not template:
        expected += CHAT_TOKENS
    if lacking := [token for token in expected if token not in known.added]:
        return (
            f"{file} has no token {', '.join(lacking)}, which prompts of {family.label} are made of: {REMEDY}"
        )
    return _other_ids(folder, family, config, known)


def _other_ids(folder: Path, family: ModelFamily, config: dict[str, Any], known: Known) -> str | None:
    """Where the tokenizer and config.json name other ids."""
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


def _template(folder: Path, settings: dict[str, Any]) -> str:
    """The chat template that transformers gives the tokenizer; "" where there is none."""
    if (path := folder / TEMPLATE).is_file():
        return path.read_text(encoding="utf-8")
    found = settings.get("chat_template") or ""
    if isinstance(found, list):  # several by name
        named = {one.get("name"): one.get("template") for one in found if isinstance(one, dict)}
        found = named.get("default") or ""
    return str(found)


def processors_template(folder: str | Path) -> str | None:
    """The chat template that a folder gives its processor alone. Raises ValueError."""
    path = Path(folder) / OLD_TEMPLATE
    found = read_object(path).get("chat_template") if path.is_file() else None
    return found if isinstance(found, str) else None


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
