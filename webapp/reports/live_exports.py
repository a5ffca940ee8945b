"""Charts and tables where they stand, as files: a page sends what it shows, and gets it as CSV or LaTeX."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.text import slugify
from django.views.decorators.http import require_POST
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from webapp.accounts.access import member
from webapp.lib.request_values import BadValue, json_body
from webapp.reports.exports import FORMATS, exported

MAX_COLUMNS = 500
MAX_LINES = 500
Text = Annotated[str, Field(max_length=4000)]


class _Block(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    title: Text


class ShownTable(_Block):
    """A table: as many cells in every row as in its head."""

    head: Annotated[list[Text], Field(min_length=1, max_length=MAX_COLUMNS)]
    rows: list[list[Text]]

    @model_validator(mode="after")
    def _is_rectangular(self) -> ShownTable:
        if any(len(row) != len(self.head) for row in self.rows):
            raise ValueError(f"every row must have {len(self.head)} cells, as the head does")
        return self


class ShownLine(BaseModel):
    """A series."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: Text
    x: list[float | int | str | None]
    """Numbers, or times as text."""
    y: list[float | int | None]

    @model_validator(mode="after")
    def _has_pairs(self) -> ShownLine:
        if len(self.x) != len(self.y):
            raise ValueError(f"{len(self.x)} x and {len(self.y)} y")
        return self


class ShownChart(_Block):
    """A chart; `kind` "log" has a logarithmic axis."""

    unit: Text = ""
    kind: Text = "line"
    lines: Annotated[list[ShownLine], Field(min_length=1, max_length=MAX_LINES)]


@require_POST
def export_shown(request: HttpRequest, kind: str) -> HttpResponse:
    """The block in the body as `csv` or `tex`. Stores nothing."""
    member(request)
    if kind not in FORMATS:
        raise Http404(f"No format {kind}.")
    block = _read(json_body(request))
    response = HttpResponse(exported(block, kind), content_type=FORMATS[kind])
    name = slugify(block["title"]) or "export"
    response["Content-Disposition"] = f'attachment; filename="{name}.{kind}"'
    return response


def _read(body: dict[str, Any]) -> dict[str, Any]:
    """Raises BadValue naming the field."""
    try:
        return (ShownChart if "lines" in body else ShownTable).model_validate(body).model_dump()
    except ValidationError as error:
        first = error.errors()[0]
        raise BadValue(".".join(str(part) for part in first["loc"]) or "body", first["msg"]) from error
