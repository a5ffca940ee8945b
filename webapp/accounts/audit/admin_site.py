"""Django's admin site, whose changes are in the audit log."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from django.contrib.admin import AdminSite
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

if TYPE_CHECKING:
    from django.contrib.auth.models import User

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class AuditedAdminSite(AdminSite):
    """Each change is one row, with its path; the fields are in the admin site's own history."""

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """The view behind the sign-in; what it changed is recorded."""
        inner = super().admin_view(view, cacheable)

        @wraps(inner)
        def audited(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            response = inner(request, *args, **kwargs)
            # A form that is shown again with its errors, or that asks for a confirmation, is answered 200.
            if request.method == "POST" and response.status_code == 302 and self.has_permission(request):
                self._record(request)
            return response

        return cast(View, audited)

    @method_decorator([never_cache, login_not_required])
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The one sign-in page of all: it asks for codes, and knows single sign-on."""
        if request.user.is_authenticated:
            raise PermissionDenied("The admin site is for superusers.")
        from django.contrib.auth.views import redirect_to_login

        return redirect_to_login(request.GET.get("next", reverse("admin:index")))

    def _record(self, request: HttpRequest) -> None:
        # Imported late, as above: the site is made while the applications' models are still being loaded.
        from webapp.accounts.models import AuditAction
        from webapp.accounts.services.audit_log import log_action

        person = cast("User", request.user)
        log_action(AuditAction.ADMINISTERED, person=person, kind="admin", object_id=request.path)
