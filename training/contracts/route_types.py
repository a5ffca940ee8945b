"""A route of an HTTP protocol between two of our processes: what is asked, what is answered, what it means.

Clients, servers, test doubles and docs/contracts.md are made from tables of routes. A request's fields that
stand in the path travel there, the others in the query of a GET or the JSON body of a POST.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from training.contracts.types import Wire

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")


class Nothing(Wire):
    """`{}`: nothing to say."""


class MalformedMessage(ValueError):
    """Raised when a request or an answer is not what the route says; the message names the field."""


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request as HTTP carries it."""

    path: str
    query: dict[str, Any]
    body: bytes
    """JSON; empty of a GET."""


@dataclass(frozen=True, eq=False)
class Route(Generic[Asked, Answered]):
    """One row of a protocol."""

    method: Literal["GET", "POST", "DELETE"]
    path: str
    """With {name} for each field that stands in it."""
    asks: type[Asked]
    answers: type[Answered]
    """`bytes` = the answer's body as it is, else JSON."""
    meaning: str
    files: str = ""
    """Files of a multipart form that carries the JSON in its field `request`; "" = no form."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @cached_property
    def path_fields(self) -> tuple[str, ...]:
        """Names of the fields in the path."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @cached_property
    def _request(self) -> TypeAdapter[Asked]:
        return TypeAdapter(self.asks)

    @cached_property
    def _answer(self) -> TypeAdapter[Answered]:
        return TypeAdapter(self.answers)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", self.path))

    def match(self, method: str, path: str) -> dict[str, str] | None:
        """The fields in a path of this route; None when it is another route's."""
        found = self._pattern.fullmatch(path) if method == self.method else None
        return found.groupdict() if found else None

    def write_request(self, request: Asked) -> WireRequest:
        """The request for HTTP."""
        if self.method == "POST" and not self.path_fields:
            return WireRequest(self.path, {}, self._request.dump_json(request))
        values = self._request.dump_python(request, mode="json")
        path = self.path.format_map(values)
        rest = {key: value for key, value in values.items() if key not in self.path_fields}
        if self.method == "POST":
            return WireRequest(path, {}, to_json(rest))
        return WireRequest(path, {key: value for key, value in rest.items() if value is not None}, b"")

    def read_request(self, in_path: Mapping[str, str], query: Mapping[str, str], body: bytes) -> Asked:
        """The request of a call. Raises MalformedMessage."""
        try:
            values = from_json(body or b"{}") if self.method == "POST" else dict(query)
            if in_path:
                values = {**values, **in_path}
            return self._request.validate_python(values)
        except ValidationError as error:
            raise MalformedMessage(problems_of(error)) from error
        except (ValueError, TypeError) as error:
            raise MalformedMessage(f"body: {error}") from error

    def keep_request(self, request: Asked) -> str:
        """The request as one piece of JSON, for another process that answers it."""
        return self._request.dump_json(request).decode()

    def kept_request(self, kept: str) -> Asked:
        """The request that `keep_request` wrote. Raises pydantic's ValidationError."""
        return self._request.validate_json(kept)

    def write_answer(self, answer: Answered) -> bytes:
        """The body of the answer."""
        return answer if isinstance(answer, bytes) else self._answer.dump_json(answer)

    def read_answer(self, body: bytes) -> Answered:
        """The answer in a body. Raises MalformedMessage."""
        if self.answers is bytes:
            return self._answer.validate_python(body)
        try:
            return self._answer.validate_json(body)
        except ValidationError as error:
            raise MalformedMessage(f"{self}: answer: {problems_of(error)}") from error


def problems_of(error: ValidationError) -> str:
    """Every field that is wrong, with what is wrong about it."""
    found = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        field = ".".join(str(part) for part in problem["loc"]) or "body"
        found.append(f"{field}: {problem['msg']}")
    return "; ".join(found)


LOADING = "loading"
"""Code of a 503 answer: the policy server is starting. Nothing was begun, so any request may be repeated."""


class Problem(Wire):
    """What was wrong."""

    code: str
    message: str


class ProblemAnswer(BaseModel):
    """Body of every answer that is no success."""

    error: Problem


def loading_message(status: int, body: bytes) -> str | None:
    """What a policy server that is starting says of it; None for any other answer."""
    if status != HTTPStatus.SERVICE_UNAVAILABLE:
        return None
    try:
        problem = ProblemAnswer.model_validate_json(body).error
    except ValidationError:
        return None
    return problem.message if problem.code == LOADING else None
