"""What a link shows to anyone who has it: its version's page, pictures and exports, and nothing else."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from webapp.lib.error_pages import answer_error
from webapp.reports import pages
from webapp.reports.services import links

GONE = "This link does not show a report: it is wrong, has expired, or was revoked. Ask for a new one."
HEADERS = {
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
    "Cache-Control": "private, no-store",
}
"""The address is the key: it must not travel to other sites, search engines or shared caches."""

View = Callable[..., HttpResponse]


def by_link(view: View) -> View:
    """Let the view have the version that the token opens; all tokens that open none get the same answer."""

    @wraps(view)
    def opened(request: HttpRequest, token: str, **values: Any) -> HttpResponse:
        try:
            link = links.find_link(token, request.META.get("REMOTE_ADDR", ""))
        except links.TooManyRequests:
            problem = "Too many requests from here; wait a minute."
            response = answer_error(request, 429, "too_many_requests", problem)
        else:
            if link is None:
                response = render(request, "reports/gone.html", {"message": GONE}, status=404)
            else:
                response = view(request, link, **values)
        for name, value in HEADERS.items():
            response[name] = value
        return response

    return login_not_required(require_safe(opened))


@by_link
def show_report(request: HttpRequest, link: links.ReportLink) -> HttpResponse:
    """The page of the frozen version."""
    links.note_opened(link)
    base = reverse("public-report", args=[links.token_of(link)])
    ctx = {"base": base, "expires_at": link.expires_at, **pages.version_context(link.version)}
    return render(request, "reports/public.html", ctx)


@by_link
def show_picture(request: HttpRequest, link: links.ReportLink, sha256: str) -> HttpResponse:
    return pages.picture(link.version, sha256)


@by_link
def show_export(request: HttpRequest, link: links.ReportLink, key: str, kind: str) -> HttpResponse:
    return pages.export(link.version, key, kind)
