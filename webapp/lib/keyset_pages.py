"""Pages of long lists by keyset: the cost of a page does not depend on how far back it lies.

    page = paginate(rows, request.GET, sorts={"newest": "-id", "best": "-reward"}, default="newest")

The URL holds everything: `sort=best&after=CURSOR` (or `before=CURSOR`), where a cursor is the sort value and
id of the row at the page's edge. Rows without a sort value come last, in both directions: they are read by a
second query, because the two databases would place NULLs at different ends of an index.
"""

import binascii
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model, Q, QuerySet
from django.http import QueryDict

from training.contracts.number_text import counted_of
from webapp.lib.query_string import changed_query
from webapp.lib.request_values import MAX_WHOLE, BadValue, read_json

PAGE_SIZE = 36
COUNT_CAP = 10_000
MAX_CURSOR_CHARS = 400


@dataclass(frozen=True)
class Page:
    """One page of a list, and the links of `parts/pagination.html`."""

    rows: list[Any]
    older: str
    """Query string of the next page; "" on the last one."""
    newer: str
    """Query string of the previous page; "" on the first one."""
    count_text: str
    """"1,204 trajectories", "10,000+ trajectories"."""
    sort: str


@dataclass(frozen=True)
class Order:
    """A column and its direction, ties broken by id in the same direction."""

    column: str
    is_descending: bool

    @classmethod
    def parse(cls, text: str) -> "Order":
        return cls(text.lstrip("-"), text.startswith("-"))

    def reversed(self) -> "Order":
        return Order(self.column, not self.is_descending)

    def names(self) -> list[str]:
        sign = "-" if self.is_descending else ""
        return [sign + name for name in dict.fromkeys([self.column, "id"])]

    def beyond(self, value: Any, pk: int) -> Q:
        """Rows that come after (value, pk) in this order."""
        side = "lt" if self.is_descending else "gt"
        if self.column == "id":
            return Q(**{f"id__{side}": pk})
        tie = Q(**{self.column: value, f"id__{side}": pk})
        # The first condition is implied; it is what lets an index scan start in the right place.
        return Q(**{f"{self.column}__{side}e": value}) & (Q(**{f"{self.column}__{side}": value}) | tie)


def paginate(
    rows: QuerySet[Any],
    query: QueryDict,
    *,
    sorts: dict[str, str],
    default: str,
    noun: str = "rows",
    page_size: int = PAGE_SIZE,
    counted: bool = True,
) -> Page:
    """The page that `query` asks for. `sorts`: name in the URL -> column, "-" for descending.

    Raises BadValue for a cursor that is not one of this list.
    """
    sort = query.get("sort", "")
    sort = sort if sort in sorts else default
    order = Order.parse(sorts[sort])
    is_backwards = "before" in query and "after" not in query
    key = "before" if is_backwards else "after"
    cursor = query.get(key, "")
    start = _decode(rows.model, order, cursor, key) if cursor else (None, None)
    found = _read(rows, order.reversed() if is_backwards else order, start, page_size + 1, is_backwards)
    has_more = len(found) > page_size
    found = found[:page_size]
    if is_backwards:
        found.reverse()
    has_older, has_newer = (bool(cursor), has_more) if is_backwards else (has_more, bool(cursor))
    return Page(
        rows=found,
        older=_link(query, "after", found[-1], order) if found and has_older else "",
        newer=_link(query, "before", found[0], order) if found and has_newer else "",
        count_text=count_text(rows, noun) if counted else "",
        sort=sort,
    )


def count_text(rows: QuerySet[Any], noun: str = "rows") -> str:
    """How many, exactly up to 10,000: counting more would cost more than showing the page."""
    number = rows.order_by()[: COUNT_CAP + 1].count()
    return counted_of(number, noun, COUNT_CAP)


def _read(
    rows: QuerySet[Any], order: Order, start: tuple[Any, int | None], limit: int, is_backwards: bool
) -> list[Any]:
    """Up to `limit` rows after `start`, those without a sort value last (first when backwards)."""
    value, pk = start
    if not rows.model._meta.get_field(order.column).null:
        kept = rows.filter(order.beyond(value, pk)) if pk is not None else rows
        return list(kept.order_by(*order.names())[:limit])
    empty = Order("id", order.is_descending)
    segments = [
        (False, rows.filter(**{f"{order.column}__isnull": False}), order),
        (True, rows.filter(**{f"{order.column}__isnull": True}), empty),
    ]
    if is_backwards:
        segments.reverse()
    if pk is not None:
        place = next(i for i, (is_empty, *_) in enumerate(segments) if is_empty == (value is None))
        is_empty, part, own_order = segments[place]
        segments = [(is_empty, part.filter(own_order.beyond(value, pk)), own_order), *segments[place + 1 :]]
    found: list[Any] = []
    for _, part, own_order in segments:
        if len(found) < limit:
            found += part.order_by(*own_order.names())[: limit - len(found)]
    return found


def _link(query: QueryDict, key: str, row: Model, order: Order) -> str:
    other = "before" if key == "after" else "after"
    return changed_query(query, **{key: encode_cursor(row, order), other: None})


def encode_cursor(row: Model, order: Order) -> str:
    """The place of `row` in a list of this order, as it stands in a URL."""
    text = json.dumps([getattr(row, order.column), row.pk], cls=_ExactEncoder, separators=(",", ":"))
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(model: type[Model], order: Order, cursor: str, key: str) -> tuple[Any, int]:
    """The (sort value, id) that a cursor holds."""
    field: Any = model._meta.get_field(order.column)
    try:
        place = read_json(urlsafe_b64decode(cursor[:MAX_CURSOR_CHARS] + "=" * (-len(cursor) % 4)), key)
        value, pk = place if isinstance(place, list) else (None, None)
        if not isinstance(pk, int) or not 0 <= pk <= MAX_WHOLE:
            raise BadValue(key, "holds no id")
        return field.to_python(value), pk
    except (ValueError, TypeError, OverflowError, ValidationError, binascii.Error) as error:
        raise BadValue(key, "not a place in this list; open the list again") from error


class _ExactEncoder(DjangoJSONEncoder):
    """Keeps microseconds: a cut-off time would name a place before its row."""

    def default(self, o: Any) -> Any:
        return o.isoformat() if hasattr(o, "isoformat") else super().default(o)
