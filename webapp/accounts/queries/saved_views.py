"""Views of list pages, kept by name: the URL holds all of a list's state, so it is a query."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import Http404, QueryDict

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role, SavedView, Team
from webapp.lib.query_string import changed_query

PLACES = ("page", "after", "before", "entry")
"""Parameters that are a place in a list and not a view of it."""
HIDDEN = "hide"


@dataclass(frozen=True)
class ViewMenu:
    """What `parts/view_menu.html` shows."""

    page: str
    query: str
    """Of the page as it stands, as it would be saved."""
    mine: list[SavedView]
    of_team: list[SavedView]
    may_save_for_team: bool
    columns: list[tuple[str, str, bool]]
    """(label, query that turns it over, is it shown)"""

    @property
    def sections(self) -> list[tuple[str, list[SavedView]]]:
        return [("Mine", self.mine), ("Team", self.of_team)]


def view_menu(request: MemberRequest, page: SavedView.Page, columns: dict[str, str]) -> ViewMenu:
    """The views of this page, and its columns. One query."""
    found = list(visible_views(request.membership.team, request.user).filter(page=page))
    hidden = hidden_columns(request.GET, columns)
    return ViewMenu(
        page=page,
        query=plain_query(request.GET),
        mine=[view for view in found if view.owner_id],
        of_team=[view for view in found if not view.owner_id],
        may_save_for_team=may_save_for_team(Role(request.membership.role)),
        columns=[
            (label, _turned(request.GET, hidden, name), name not in hidden) for name, label in columns.items()
        ],
    )


def hidden_columns(query: QueryDict, columns: dict[str, str]) -> list[str]:
    """The columns that the URL hides (`hide=owner,started`); unknown names are dropped."""
    wanted = query.get(HIDDEN, "").split(",")
    return [name for name in columns if name in wanted]


def visible_views(team: Team, user: User) -> QuerySet[SavedView]:
    """The team's views and the person's own in it."""
    return SavedView.objects.filter(Q(owner=None) | Q(owner=user), team=team)


def get_deletable_view(request: MemberRequest, pk: int) -> SavedView:
    """One's own view, or for an annotator one of the team's; 404 for others."""
    view = visible_views(member(request).team, request.user).filter(pk=pk).first()
    if view is None:
        raise Http404("No such view, or it is another person's.")
    if view.owner_id is None:
        member(request, Role.ANNOTATOR)
    return view


def may_save_for_team(role: Role) -> bool:
    """Annotators and up."""
    return role.includes(Role.ANNOTATOR)


def plain_query(query: QueryDict) -> str:
    """Its non-empty parameters, sorted, without a place in the list: equal views have equal texts."""
    kept = [(key, value) for key in query for value in query.getlist(key) if value and key not in PLACES]
    return urlencode(sorted(kept))


def _turned(query: QueryDict, hidden: list[str], name: str) -> str:
    """This page with the column shown or hidden."""
    wanted = [each for each in hidden if each != name] if name in hidden else [*hidden, name]
    return changed_query(query, **{HIDDEN: ",".join(wanted)}) or "?"
