"""Lists of the API: keyset pages with a cursor to ask for the next one."""

from typing import Any, Generic, TypeVar

from django.db.models import QuerySet
from django.http import QueryDict
from ninja import Schema

from webapp.lib.keyset_pages import paginate

MAX_LIMIT = 200
Row = TypeVar("Row")


class Page(Schema, Generic[Row]):
    """Some rows; `next` is the `after` of the next page."""

    items: list[Row]
    next: str | None


def page_of(rows: QuerySet[Any], after: str, limit: int, *, sort: str = "-id") -> dict[str, Any]:
    """{"items": rows, "next": cursor or None}, newest first."""
    query = QueryDict(mutable=True)
    if after:
        query["after"] = after
    page = paginate(
        rows,
        query,
        sorts={"only": sort},
        default="only",
        page_size=min(max(limit, 1), MAX_LIMIT),
        counted=False,
    )
    return {
        "items": page.rows,
        "next": QueryDict(page.older.lstrip("?")).get("after") if page.older else None,
    }
