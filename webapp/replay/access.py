"""The one way in which views reach a replay entry, or an import."""

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest

from webapp.accounts.access import MemberRequest, owned_row
from webapp.accounts.models import Role, Team
from webapp.lib.request_values import whole_number
from webapp.replay.models import (
    AdmissionPolicy,
    ReplayEntry,
    ReplayImport,
    ReviewItem,
    ReviewLabel,
    ReviewRound,
)


def get_entry(request: HttpRequest, pk: int, role: Role = Role.VIEWER) -> ReplayEntry:
    """The entry with its trajectory and task loaded; 404 for strangers, 403 below `role`."""
    related = ("trajectory", "trajectory__task", "trajectory__experiment", "labelled_by")
    return owned_row(request, ReplayEntry, pk, role, *related)


def get_import(request: HttpRequest, pk: int, role: Role = Role.VIEWER) -> ReplayImport:
    """The import with its owner and task set loaded; 404 for strangers, 403 below `role`."""
    return owned_row(request, ReplayImport, pk, role, "owner", "task_set")


def get_policy(team: Team, pk: str) -> AdmissionPolicy:
    """The team's; 404 for any other."""
    found = AdmissionPolicy.objects.filter(team=team, pk=whole_number(pk, "policy")).first()
    if found is None:
        raise Http404("No such policy, or it belongs to a team that you are not in.")
    return found


def get_review(request: MemberRequest, pk: int, role: Role = Role.VIEWER) -> ReviewRound:
    """404 for strangers, 403 below `role`."""
    return owned_row(request, ReviewRound, pk, role, "owner")


def get_label(review: ReviewRound, user: User, pk: int) -> ReviewLabel:
    """404 unless it is the user's own of this round."""
    mine = ReviewLabel.objects.filter(item__round=review, person=user)
    given = mine.select_related("item", "person").filter(pk=pk).first()
    if given is None:
        raise Http404("No such label of yours in this review.")
    return given


def get_item(review: ReviewRound, pk: int) -> ReviewItem:
    """404 unless the round has it."""
    item = review.items.filter(pk=pk).select_related("entry").first()
    if item is None:
        raise Http404("This review has no such item.")
    return item
