"""What made the token ids of a completion, as one line of named parts that can be compared.

    tokenizer:9f86d081884c template:60303ae22b99 style:first-desk dialect:auto coordinates:permille
    image:1024-49152/16x2x2 history:full

and `texts`, where tree or terminal are read.

Equal lines mean: the same ids stand for the same text, after the same prompt and pictures. A recorded
trajectory is reused token for token under an equal line only; `training.render.context_fingerprint` makes it.
"""

from collections.abc import Iterable, Mapping

from training.contracts.types import Turn

PART_WORDS = {
    "tokenizer": "another tokenizer",
    "template": "another wording of the prompt",
    "style": "another prompt style",
    "dialect": "another action dialect",
    "coordinates": "another coordinate space",
    "image": "other image limits",
    "history": "another history setting",
    "texts": "another form of tree and terminal",
}
"""Part -> what it means when two lines differ in it. The order is that of the line."""


def write_fingerprint(parts: Mapping[str, str]) -> str:
    """The line of all parts that there are; no value holds a blank."""
    return " ".join(f"{name}:{parts[name]}" for name in PART_WORDS if name in parts)


def differences(recorded: str, own: str) -> list[str]:
    """In words, how two lines differ; empty when they are equal. An empty line is unknown, and differs."""
    if recorded == own and own:
        return []
    if not recorded or not own:
        return ["unknown tokenizer and prompt"]
    ours, theirs = _parts(own), _parts(recorded)
    # Wording differs whenever style, dialect or coordinates do: said only where nothing else says it.
    names = [name for name in PART_WORDS if ours.get(name) != theirs.get(name)]
    shown_names = [name for name in names if name != "template"] or names
    return [PART_WORDS[name] for name in shown_names] or ["another version of Deskhand"]


def shared_fingerprint(turns: Iterable[Turn]) -> str:
    """The line of all completions of `turns`; "" when it is unknown, they differ, or there are none."""
    sampled = [turn.completion for turn in turns if turn.completion and turn.completion.token_ids]
    found = {completion.fingerprint for completion in sampled}
    return found.pop() if len(found) == 1 else ""


def _parts(line: str) -> dict[str, str]:
    return dict(part.split(":", 1) for part in line.split(" ") if ":" in part)
