"""Add a host, and revoke one: for admins of the fleet's teams."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.access import MemberRequest
from webapp.fleet.access import require_fleet_admin
from webapp.fleet.models import JoinedHost
from webapp.worker_door import joining


@require_http_methods(["GET", "POST"])
def host_add(request: MemberRequest) -> HttpResponse:
    """One command that makes another machine an env host; POST makes its token, which is shown once."""
    require_fleet_admin(request)
    server = settings.HOSTS_URL
    token = joining.make_token(user=request.user) if request.method == "POST" and server else ""
    context = {
        "nav": "fleet",
        "server": server,
        "command": f"make join SERVER={server} TOKEN={token} ROLES=env" if token else "",
        "hours": joining.TOKEN_HOURS,
    }
    return render(request, "fleet/add_host.html", context)


@require_POST
def host_revoke(request: MemberRequest, pk: int) -> HttpResponse:
    """Its identity ends."""
    require_fleet_admin(request)
    host = get_object_or_404(JoinedHost, pk=pk, revoked_at=None)
    joining.revoke(host=host, user=request.user)
    messages.success(request, f"{host.name} is revoked; what it ran is run again elsewhere.")
    return redirect("fleet-show")
