"""What every page shows of the signed-in person."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from webapp.accounts.access import current_membership, memberships
from webapp.accounts.models import Role


def account(request: HttpRequest) -> dict[str, Any]:
    """`membership`: the role that counts on this page; `teams`: all of them; `may`: what the role allows."""
    if not getattr(request, "user", None) or not request.user.is_authenticated:
        return {}
    return {
        "membership": SimpleLazyObject(lambda: current_membership(request)),
        "teams": SimpleLazyObject(lambda: memberships(request)),
        "may": SimpleLazyObject(lambda: permissions(request)),
    }


def permissions(request: HttpRequest) -> dict[str, bool]:
    """{"annotate": True, "operate": False, "admin": False} for templates: `{% if may.operate %}`."""
    held = current_membership(request)
    role = Role(held.role) if held else None
    return {
        "annotate": bool(role and role.includes(Role.ANNOTATOR)),
        "operate": bool(role and role.includes(Role.OPERATOR)),
        "admin": bool(role and role.includes(Role.ADMIN)),
    }
