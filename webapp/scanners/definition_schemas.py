"""Definitions of scanners, read and allowed."""

from functools import reduce
from operator import or_
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from training.contracts.plain_errors import in_plain_words
from webapp.accounts.models import Team
from webapp.lib.request_values import BadValue
from webapp.scanners.kinds.contract import Kind
from webapp.scanners.kinds.registry import KINDS

ANY_KIND: Any = reduce(or_, KINDS.values())
ADAPTER: TypeAdapter[Kind] = TypeAdapter(Annotated[ANY_KIND, Field(discriminator="kind")])


def read_definition(values: Any) -> Kind:
    """The kind that `values` says. Raises BadValue, which names the field."""
    try:
        return ADAPTER.validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or "kind"
        raise BadValue(where, in_plain_words(first["msg"])) from error


def check_allowed(definition: Kind, team: Team) -> None:
    """Raise BadValue where this installation does not let the team send transcripts there."""
    for field, problem in definition.problems(team):
        raise BadValue(field, problem)
