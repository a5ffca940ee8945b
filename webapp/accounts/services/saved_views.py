"""Keep and delete views of list pages."""

from django.contrib.auth.models import User
from django.http import QueryDict

from webapp.accounts.models import SavedView, Team
from webapp.accounts.queries.saved_views import plain_query
from webapp.lib.request_values import BadValue, check_text

MAX_VIEWS = 50
MAX_NAME = 60
MAX_QUERY = 1000


def save_view(*, team: Team, owner: User | None, page: str, name: str, query: str) -> SavedView:
    """Keep a view; one of the same name is replaced. `owner` None: the team's. Raises BadValue."""
    if page not in SavedView.Page.values:
        raise BadValue("page", f"must be one of {', '.join(SavedView.Page.values)}")
    check_text(name, "name")
    check_text(query, "query")
    name, query = name.strip(), plain_query(QueryDict(query.lstrip("?")))
    if not 1 <= len(name) <= MAX_NAME:
        raise BadValue("name", f"a view needs a name of 1 to {MAX_NAME} characters")
    if len(query) > MAX_QUERY:
        raise BadValue("query", f"at most {MAX_QUERY} characters, this has {len(query)}")
    known = SavedView.objects.filter(team=team, owner=owner, page=page)
    if known.count() >= MAX_VIEWS and not known.filter(name=name).exists():
        raise BadValue("name", f"there are {MAX_VIEWS} views already; delete one first")
    view, _ = SavedView.objects.update_or_create(
        team=team, owner=owner, page=page, name=name, defaults={"query": query}
    )
    return view


def delete_view(view: SavedView) -> None:
    """Delete a view; its list page stays."""
    SavedView.objects.filter(pk=view.pk).delete()
