"""The preset editor's rows -> a preset, and back."""

from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from pydantic import ValidationError

from training.contracts.config import RewardConfig, RewardPreset
from training.contracts.config.reward_presets import MAX_TERMS, REWARD_PRESETS
from training.contracts.plain_errors import in_plain_words
from training.rewards.expressions import preset_problems
from webapp.accounts.models import Team
from webapp.experiments.queries.reward_presets import saved_preset
from webapp.lib.request_values import BadValue, decimal_number

DRAFT = "draft.v0"
"""Name of a preset that is still being edited."""
COLUMNS = ("term", "weight", "partial", "expression", "count", "term_low", "term_high")


def read_preset(post: QueryDict) -> RewardConfig:
    """What is in the editor. Raises BadValue, which names the term."""
    columns = [post.getlist(name) for name in COLUMNS]
    if len({len(column) for column in columns}) > 1 or len(columns[0]) > MAX_TERMS:
        raise BadValue("terms", f"every term needs all of its fields, and {MAX_TERMS} terms are the most")
    rows = [_row(dict(zip(COLUMNS, cells, strict=True))) for cells in zip(*columns, strict=True)]
    rows = [row for row in rows if row["term"]]
    if not rows:
        raise BadValue("terms", "a preset needs at least one term")
    limits = {"low": _optional(post, "low"), "high": _optional(post, "high")}
    try:
        definition = RewardPreset.model_validate({"terms": rows, **limits})
    except ValidationError as error:
        raise BadValue(*_first(error, rows)) from error
    for place, problem in preset_problems(definition):
        raise BadValue(definition.terms[place].term, problem)
    alpha = decimal_number(post.get("alpha", "0.3"), "alpha", low=0, high=1)
    return RewardConfig(preset=DRAFT, alpha=alpha, definition=definition)


def _row(cells: dict[str, str]) -> dict[str, Any]:
    term = cells["term"].strip()
    if not term:
        if cells["expression"].strip():
            raise BadValue("terms", "an expression needs a name of its own")
        return {"term": ""}
    return {
        "term": term,
        "weight": decimal_number(cells["weight"], f"weight of {term}"),
        "is_partial": cells["partial"] == "alpha",
        "expression": cells["expression"].strip(),
        "count": cells["count"],
        "low": _optional_text(cells["term_low"], f"low of {term}"),
        "high": _optional_text(cells["term_high"], f"high of {term}"),
    }


def _optional(post: QueryDict, name: str) -> float | None:
    return _optional_text(post.get(name, ""), name)


def _optional_text(text: str, field: str) -> float | None:
    return decimal_number(text, field) if text.strip() else None


def _first(error: ValidationError, rows: list[dict[str, Any]]) -> tuple[str, str]:
    """The field and what is wrong with it."""
    item = error.errors()[0]
    where: list[Any] = list(item["loc"])
    message = in_plain_words(item["msg"])
    if len(where) > 1 and where[0] == "terms":
        name = rows[where[1]]["term"]
        return " ".join([*map(str, where[2:]), "of", name]) if where[2:] else name, message
    return str(where[0]) if where else "preset", message


@dataclass(frozen=True, slots=True)
class Editor:
    """What the editor shows, as text or values."""

    rows: list[Any]
    """Each with the attributes of `WeightedTerm`."""
    low: Any
    high: Any
    alpha: Any
    name: str
    note: str = ""


def editor_of(rewards: RewardConfig) -> Editor:
    """The editor with a preset in it; saving one that is shipped takes a name of its own."""
    preset = rewards.terms
    name = rewards.preset.rpartition(".v")[0] + ("-edited" if rewards.definition is None else "")
    return Editor(list(preset.terms), preset.low, preset.high, rewards.alpha, name)


def typed_editor(post: QueryDict) -> Editor:
    """The editor as it was sent, for a refusal."""
    rows = [
        dict(zip(COLUMNS, cells, strict=True)) for cells in zip(*map(post.getlist, COLUMNS), strict=False)
    ]
    shown = [
        row | {"is_partial": row["partial"] == "alpha", "low": row["term_low"], "high": row["term_high"]}
        for row in rows[:MAX_TERMS]
    ]
    return Editor(shown, *(post.get(name, "") for name in ("low", "high", "alpha", "name", "note")))


def chosen_preset(team: Team, name: str) -> RewardConfig:
    """A shipped or saved preset by name. Raises BadValue."""
    if name in REWARD_PRESETS:
        return RewardConfig(preset=name)
    saved = saved_preset(team, name)
    if saved is None:
        raise BadValue("preset", f"there is no {name[:80]}")
    return saved.rewards
