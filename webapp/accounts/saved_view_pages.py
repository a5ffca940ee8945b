"""Keep and delete views of list pages."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role, SavedView
from webapp.accounts.queries.saved_views import get_deletable_view
from webapp.accounts.services.saved_views import delete_view, save_view
from webapp.lib.request_values import BadValue

ROUTES = {
    SavedView.Page.EXPERIMENTS: "experiment-list",
    SavedView.Page.TRAJECTORIES: "trajectory-list",
    SavedView.Page.REPLAY: "replay-inbox",
}


@require_POST
def save(request: MemberRequest) -> HttpResponse:
    """Keep the page as it stands under a name, for oneself or (`for_team`) for the team."""
    typed, for_team = request.POST, "for_team" in request.POST
    membership = member(request, Role.ANNOTATOR if for_team else Role.VIEWER)
    page = typed.get("page", "")
    try:
        view = save_view(
            team=membership.team,
            owner=None if for_team else request.user,
            page=page,
            name=typed.get("name", ""),
            query=typed.get("query", ""),
        )
    except BadValue as error:
        if page not in SavedView.Page.values:
            raise
        messages.error(request, f"The view was not kept: {error}.")
        return redirect(ROUTES[SavedView.Page(page)])
    return redirect(url_of(view))


@require_POST
def delete(request: MemberRequest, pk: int) -> HttpResponse:
    """Delete one of one's own; of the team's as an annotator."""
    view = get_deletable_view(request, pk)
    delete_view(view)
    messages.success(request, f"The view “{view.name}” is deleted.")
    return redirect(ROUTES[SavedView.Page(view.page)])


def url_of(view: SavedView) -> str:
    return f"{reverse(ROUTES[SavedView.Page(view.page)])}?{view.query}"
