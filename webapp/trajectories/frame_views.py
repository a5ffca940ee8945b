"""`/frames/SHA.jpg`, `.thumb.jpg`, `.png`: immutable images for members of a team that recorded them.

Live pages ask for many per second, so what is known stays known in this process: which frames a team has
(rows are never changed), and for a few seconds whose session a cookie is.
"""

import asyncio
import time
from collections import OrderedDict

from django.conf import settings
from django.contrib.auth import aget_user
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified, HttpResponseRedirect

from webapp.accounts.models import Membership
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.frame_files.names import SHA256
from webapp.trajectories.models import Frame
from webapp.trajectories.services.frames import VARIANTS, frame_link

SESSION_TTL_S = 10.0
"""How long a signed-out or removed member's cookie can still fetch frames whose sha256 it knows."""
MAX_KNOWN = 50_000
CACHE_CONTROL = "private, max-age=31536000, immutable"
LINK_MARGIN_S = 5
"""A browser asks for a new link so long before the old one ends."""

_teams_of_session: OrderedDict[str, tuple[float, frozenset[int]]] = OrderedDict()
_known_frames: OrderedDict[tuple[int, str], None] = OrderedDict()


@login_not_required
async def show_frame(request: HttpRequest, sha256: str, variant: str) -> HttpResponse:
    """The image, or where the storage makes links a redirect to it; 304 when the browser has it, 404 when it
    is not the team's."""
    if variant not in VARIANTS or not SHA256.match(sha256) or not await _may_see(request, sha256):
        return HttpResponse("No such frame.", status=404, content_type="text/plain")
    etag = f'"{sha256}.{variant}"'
    if etag in request.headers.get("If-None-Match", ""):
        response: HttpResponse = HttpResponseNotModified()
    elif link := frame_link(sha256, variant):
        return _redirect(*link)
    else:
        try:
            body = await asyncio.to_thread(read_frame, sha256, variant)
        except FileNotFoundError:
            return HttpResponse("The frame's file is gone.", status=404, content_type="text/plain")
        response = HttpResponse(body, content_type=VARIANTS[variant])
    response["ETag"] = etag
    response["Cache-Control"] = CACHE_CONTROL
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _redirect(url: str, lives_s: int) -> HttpResponse:
    """Kept by the browser while the link lives: it asks for the same URL again, whose picture it has."""
    response = HttpResponseRedirect(url)
    response["Cache-Control"] = f"private, max-age={max(0, lives_s - LINK_MARGIN_S)}"
    response["Referrer-Policy"] = "no-referrer"
    return response


async def _may_see(request: HttpRequest, sha256: str) -> bool:
    known = await _teams(request)
    if await _have(known, sha256):
        return True
    newer = await _teams(request, is_new=True)  # else who has just joined a team sees no picture of it
    return newer != known and await _have(newer, sha256)


async def _have(teams: frozenset[int], sha256: str) -> bool:
    if any((team, sha256) in _known_frames for team in teams):
        return True
    async for team in Frame.objects.filter(team_id__in=teams, sha256=sha256).values_list(
        "team_id", flat=True
    ):
        _remember(_known_frames, (team, sha256), None)
        return True
    return False


async def _teams(request: HttpRequest, *, is_new: bool = False) -> frozenset[int]:
    """Teams of the signed-in user; empty without one. `is_new`: not what is known of the session."""
    cookie = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
    if not cookie:
        return frozenset()
    known = _teams_of_session.get(cookie)
    if known and known[0] > time.monotonic() and not is_new:
        return known[1]
    user = await aget_user(request)
    rows = Membership.objects.filter(user=user.pk).values_list("team_id", flat=True)
    teams = frozenset([team async for team in rows]) if user.is_authenticated else frozenset()
    _remember(_teams_of_session, cookie, (time.monotonic() + SESSION_TTL_S, teams))
    return teams


def _remember(known: OrderedDict, key: object, value: object) -> None:
    """Keep the newest `MAX_KNOWN`."""
    known[key] = value
    known.move_to_end(key)
    while len(known) > MAX_KNOWN:
        known.popitem(last=False)
