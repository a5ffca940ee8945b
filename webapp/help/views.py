"""Help: pages of the built site in the frame of the product, their pictures, and a search over all."""

import mimetypes
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from webapp.accounts.access import current_membership, member
from webapp.help.site import FRONT_PAGE, navigation, read_page, search, site_file
from webapp.lib.error_pages import answer_error

MAX_QUERY = 200
NOT_BUILT = "The documentation is not built here yet: run `make setup` on the machine of the web process."


@require_safe
def show_front(request: HttpRequest) -> HttpResponse:
    """The site's first page."""
    return redirect("help-page", FRONT_PAGE)


@require_safe
def show_page(request: HttpRequest, name: str) -> HttpResponse:
    """One page; 404 names what is missing."""
    page = read_page(name)
    if page is None:
        missing = "The documentation has no such page." if navigation() else NOT_BUILT
        return answer_error(request, 404, "not_found", missing)
    return _render(request, "help/page.html", {"page": page, "name": name})


@require_safe
def show_search(request: HttpRequest) -> HttpResponse:
    """The sections that have all words of `q`."""
    text = request.GET.get("q", "").replace("\0", "")[:MAX_QUERY].strip()
    return _render(request, "help/search.html", {"text": text, "hits": search(text)})


def _render(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """In the frame of the current team; people without one may read, too."""
    if current_membership(request):
        member(request)
    return render(request, template, {**context})


@require_safe
def show_file(request: HttpRequest, name: str) -> HttpResponse:
    """A picture or file that a page shows or offers."""
    path = site_file(name)
    if path is None:
        raise Http404("There is no such file of the documentation.")
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    response = HttpResponse(path.read_bytes(), content_type=kind)
    if name.startswith("_downloads/"):
        response["Content-Disposition"] = content_disposition_header(True, path.name)
    response["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    return response
