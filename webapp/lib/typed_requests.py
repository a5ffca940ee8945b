"""Typed requests, and small answers that several views share."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from webapp.accounts.models import Membership


class MemberRequest(HttpRequest):
    """What a view holds once `webapp.lib.access` has let it pass; a type only, never constructed."""

    user: User
    membership: Membership
    """The user's role in the team that this page is about."""


def changed_query(query: QueryDict, **changes: object) -> str:
    """`query` as "?a=1&b=2" with `changes` applied; None or "" removes a key. "" when nothing is left."""
    values = {key: query.getlist(key) for key in query}
    for key, value in changes.items():
        values[key] = [] if value is None or value == "" else [str(value)]
    text = urlencode({key: value for key, value in values.items() if value}, doseq=True)
    return f"?{text}" if text else ""
