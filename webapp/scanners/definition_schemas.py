"""What a scanner looks for, as JSON: one kind per class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from training.contracts.types import ActionKind
from webapp.accounts.models import Team
from webapp.lib.chat.chat_model import ChatModel, chat_problems
from webapp.lib.request_values import BadValue
from webapp.scanners.linear_patterns import check_pattern

ANY = "any"
Where = Literal["said", "typed", "errors", "screen text"]


class Kind(BaseModel):
    """Base of all kinds."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TextPattern(Kind):
    """Turns whose text has a match of a regular expression."""

    kind: Literal["text"] = "text"
    pattern: str = Field(min_length=1, max_length=500)
    """RE2 syntax: time grows with the text alone."""
    where: Where = "said"
    """said: thoughts and completions; typed: text that actions typed."""
    min_turns: int = Field(default=1, ge=1, le=1000)
    """As many turns have to match."""

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        check_pattern(pattern)
        return pattern


class ActionSequence(Kind):
    """Turns in a row whose actions are of these kinds."""

    kind: Literal["actions"] = "actions"
    steps: tuple[str, ...] = Field(min_length=1, max_length=20)
    """Kinds of actions; "any" stands for each of them."""
    times: int = Field(default=1, ge=1, le=100)
    """The sequence so often in a row."""

    @field_validator("steps")
    @classmethod
    def _known(cls, steps: tuple[str, ...]) -> tuple[str, ...]:
        for step in steps:
            if step != ANY and step not in tuple(ActionKind):
                raise ValueError(f"{step!r} is no kind of action; use {', '.join(ActionKind)} or {ANY}")
        return steps


class Loop(Kind):
    """The same actions again and again: clicks on one widget count as the same."""

    kind: Literal["loop"] = "loop"
    longest: int = Field(default=4, ge=1, le=20)
    """Turns of the longest round that is looked for."""
    times: int = Field(default=3, ge=2, le=100)
    """Rounds in a row."""


class StillScreen(Kind):
    """A screen that no action changes."""

    kind: Literal["still"] = "still"
    turns: int = Field(default=4, ge=2, le=1000)
    """In a row on the same screen."""


class Rule(Kind):
    """A rule of Deskhand's own, by its name in `shipped_rules.RULES`."""

    kind: Literal["rule"] = "rule"
    rule: str


class ModelQuestion(ChatModel):
    """A question that a language model answers about each transcript; it is never told score or reward."""

    kind: Literal["model"] = "model"
    question: str = Field(min_length=1, max_length=4000)
    screens: int = Field(default=0, ge=0, le=8)
    """The last screenshots that go with the transcript."""
    max_tokens: int = Field(default=400, ge=16, le=32_000)
    price_in: float = Field(default=0.0, ge=0, le=10_000, allow_inf_nan=False)
    price_out: float = Field(default=0.0, ge=0, le=10_000, allow_inf_nan=False)
    """Per million tokens, in the currency of the team's choice."""


Definition = TextPattern | ActionSequence | Loop | StillScreen | Rule | ModelQuestion
ADAPTER: TypeAdapter[Definition] = TypeAdapter(Annotated[Definition, Field(discriminator="kind")])


def read_definition(values: Any) -> Definition:
    """The kind that `values` says. Raises BadValue, which names the field."""
    try:
        return ADAPTER.validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or "kind"
        raise BadValue(where, first["msg"].removeprefix("Value error, ")) from error


def check_allowed(definition: Definition, team: Team) -> None:
    """Raise BadValue where this installation does not let the team send transcripts there."""
    for field, problem in _place_problems(definition, team):
        raise BadValue(field, problem)


def _place_problems(definition: Definition, team: Team) -> Iterator[tuple[str, str]]:
    if not isinstance(definition, ModelQuestion):
        return
    if not definition.url or not definition.model:
        yield "model", "needs an address and the name of a model; save it as a scanner of your team"
        return
    yield from chat_problems(definition, team.name)
