"""/views: the team's and one's own views of list pages."""

from typing import Any

from django.http import HttpResponse
from ninja import Field, Router, Schema, Status

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role, SavedView
from webapp.accounts.queries.saved_views import get_deletable_view, visible_views
from webapp.accounts.services import saved_views

router = Router(tags=["views"])


class SavedViewOut(Schema):
    """A list page's filters, order and hidden columns under a name."""

    id: int
    page: SavedView.Page
    name: str
    query: str
    """The page's query string."""
    is_team: bool

    @staticmethod
    def resolve_is_team(view: SavedView) -> bool:
        return view.owner_id is None


class SavedViewIn(Schema):
    """What to keep; a view of the same name is replaced."""

    page: SavedView.Page
    name: str = Field(min_length=1, max_length=60)
    query: str = Field("", max_length=1000)
    for_team: bool = False


@router.get("", response=list[SavedViewOut], operation_id="list_views")
def list_views(request: MemberRequest, page: SavedView.Page | None = None) -> Any:
    """The team's views and the caller's own."""
    rows = visible_views(member(request).team, request.user)
    return rows.filter(page=page) if page else rows


@router.post("", response={201: SavedViewOut}, operation_id="save_view")
def save_view(request: MemberRequest, body: SavedViewIn) -> Any:
    """Keep a view for oneself, or with `for_team` for the team, which needs the role annotator."""
    team = member(request, Role.ANNOTATOR if body.for_team else Role.VIEWER).team
    owner = None if body.for_team else request.user
    view = saved_views.save_view(team=team, owner=owner, page=body.page, name=body.name, query=body.query)
    return Status(201, view)


@router.delete("/{int:pk}", response={204: None}, operation_id="delete_view")
def delete_view(request: MemberRequest, pk: int) -> Any:
    """Delete one's own view, or as an annotator one of the team's."""
    saved_views.delete_view(get_deletable_view(request, pk))
    return HttpResponse(status=204)
