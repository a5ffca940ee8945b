"""Add a host, and revoke one: for admins of the fleet's teams."""

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.form_tokens import once_per_form
from webapp.fleet.access import require_fleet_admin
from webapp.fleet.models import JoinedHost
from webapp.lib.host_links.joined_identity import ROLES
from webapp.worker_door.joined_hosts import joining


@require_http_methods(["GET", "POST"])
@once_per_form
def host_add(request: MemberRequest) -> HttpResponse:
    """One command that makes another machine a host; POST makes its token, which is shown once."""
    require_fleet_admin(request)
    own_team = member(request).team
    server = settings.HOSTS_URL
    token, roles = "", list(ROLES[:1])
    if request.method == "POST" and server:
        roles = [role for role in ROLES if role in request.POST.getlist("role")] or roles
        team = None if request.POST.get("teams") == "all" else own_team
        token = joining.make_token(user=request.user, roles=roles, team=team)
    context = {
        "server": server,
        "command": joining.join_command(roles) if token else "",
        "token": token,
        "is_gpu_host": "gpu" in roles,
        "team": own_team,
        "is_for_all": request.POST.get("teams") == "all",
        "hours": round(joining.TOKEN_HOURS),
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
