"""Links to the same page with another query."""

from urllib.parse import urlencode

from django.http import QueryDict


def changed_query(query: QueryDict, **changes: object) -> str:
    """`query` as "?a=1&b=2" with `changes` applied; None or "" removes a key. "" when nothing is left."""
    values = {key: query.getlist(key) for key in query}
    for key, value in changes.items():
        values[key] = [] if value is None or value == "" else [str(value)]
    text = urlencode({key: value for key, value in values.items() if value}, doseq=True)
    return f"?{text}" if text else ""
