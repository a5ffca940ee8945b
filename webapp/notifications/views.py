"""The page Notifications: a team's rules and the log of what they sent."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.access import MemberRequest, member, owned_row
from webapp.accounts.form_tokens import once_per_form
from webapp.accounts.models import Membership, Role
from webapp.lib.keyset_pages import paginate
from webapp.lib.request_values import BadValue, whole_number
from webapp.live.event_publishing import last_seq
from webapp.notifications.channels.registry import CHANNELS
from webapp.notifications.models import (
    DEFAULT_INBOX_HOURS,
    DEFAULT_STALLED_MINUTES,
    RULE_KINDS,
    Delivery,
    Kind,
    NotificationRule,
)
from webapp.notifications.screenshot_strip_links import delivery_of, picture_of
from webapp.notifications.services import rules

PICTURE_HEADERS = {"X-Robots-Tag": "noindex", "Cache-Control": "private, max-age=86400"}


@require_safe
def list_rules(request: MemberRequest) -> HttpResponse:
    """Any member sees it; admins change the rules."""
    return _page(request, member(request), {"kinds": [Kind.FAILED, Kind.ALARM, Kind.STALLED]})


def _page(
    request: MemberRequest, held: Membership, entered: dict[str, Any], status: int = 200
) -> HttpResponse:
    context = {
        "rules": held.team.notification_rules.order_by("pk"),
        "channels": [(name, row.label, row.hint()) for name, row in CHANNELS.items()],
        "kinds": [(kind, kind.label) for kind in RULE_KINDS],
        "entered": {"stalled_minutes": DEFAULT_STALLED_MINUTES, "inbox_hours": DEFAULT_INBOX_HOURS} | entered,
        "cursor": last_seq(f"notices.{held.team_id}"),
    }
    return render(request, "notifications/list.html", context | _log_context(request, held), status=status)


@require_safe
def log_part(request: MemberRequest) -> HttpResponse:
    """The log alone, for the live page."""
    return render(request, "notifications/parts/log.html", _log_context(request, member(request)))


def _log_context(request: MemberRequest, held: Membership) -> dict[str, Any]:
    rows = Delivery.objects.filter(team=held.team_id).select_related("rule")
    page = paginate(rows, request.GET, sorts={"newest": "-id"}, default="newest", noun="messages")
    return {"page": page}


@require_safe
def show_cursor(request: MemberRequest) -> HttpResponse:
    """After which event a browser that was just allowed to notify begins."""
    return JsonResponse({"after": last_seq(f"notices.{member(request).team_id}")})


@require_POST
@once_per_form
def add_rule(request: MemberRequest) -> HttpResponse:
    """A new rule; what was entered stays in the form when it cannot be."""
    held = member(request, Role.ADMIN)
    post = request.POST
    entered: dict[str, Any] = {name: post.get(name, "") for name in ("channel", "target", "secret")}
    entered |= {"kinds": post.getlist("kinds"), "has_pictures": "has_pictures" in post}
    try:
        minutes = whole_number(
            post.get("stalled_minutes", ""), "stalled_minutes", low=1, high=rules.MAX_MINUTES
        )
        hours = whole_number(post.get("inbox_hours", ""), "inbox_hours", low=0, high=rules.MAX_HOURS)
        wish = rules.NewRule(stalled_minutes=minutes, inbox_hours=hours, **entered)
        site = request.build_absolute_uri("/")
        rule = rules.add_rule(team=held.team, by=request.user, site_url=site, wish=wish)
    except BadValue as error:
        messages.error(request, str(error))
        numbers = {name: post.get(name, "") for name in ("stalled_minutes", "inbox_hours")}
        return _page(request, held, entered | numbers, status=400)
    messages.success(request, f"{rule}: send a test to see that it arrives.")
    return redirect("notification-list")


@require_POST
def test_rule(request: MemberRequest, pk: int) -> HttpResponse:
    """Send a test message."""
    rules.send_test(rule=_rule(request, pk), by=request.user)
    messages.success(request, "The test is on its way; the log below says how it went.")
    return redirect("notification-list")


@require_POST
def switch_rule(request: MemberRequest, pk: int) -> HttpResponse:
    """Turn a rule off or on."""
    rules.switch_rule(rule=_rule(request, pk), is_on=request.POST.get("is_on") == "1", by=request.user)
    return redirect("notification-list")


@require_POST
def delete_rule(request: MemberRequest, pk: int) -> HttpResponse:
    """Delete a rule with its log."""
    rules.delete_rule(rule=_rule(request, pk), by=request.user)
    messages.success(request, "Rule deleted.")
    return redirect("notification-list")


@require_POST
def retry(request: MemberRequest, pk: int) -> HttpResponse:
    """Try a message again that was given up."""
    delivery = owned_row(request, Delivery, pk, Role.ADMIN, "team", "rule")
    if not rules.retry(delivery=delivery, by=request.user):
        messages.error(request, "It waits or was delivered already.")
    return redirect("notification-list")


@login_not_required
@require_safe
def show_picture(request: HttpRequest, token: str) -> HttpResponse:
    """The strip of a message, opened by its signed link: chats fetch it without an account."""
    delivery = delivery_of(token)
    strip = picture_of(delivery.frames) if delivery else None
    if strip is None:
        raise Http404("No such picture, or its link is too old.")
    return HttpResponse(strip, content_type="image/jpeg", headers=PICTURE_HEADERS)


def _rule(request: MemberRequest, pk: int) -> NotificationRule:
    return owned_row(request, NotificationRule, pk, Role.ADMIN, "team")
