"""The places of the sidebar."""

from typing import Any

from django import template

from webapp.ui.places import PLACES, current_page

register = template.Library()


@register.simple_tag(takes_context=True)
def places(context: template.Context) -> list[dict[str, Any]]:
    """Each with the pages that this person may open, the open one marked."""
    request = context.get("request")
    current = current_page(request.path) if request else None
    sees_all = bool(context.get("may") and context["may"]["admin"]) or bool(
        request and request.user.is_superuser
    )
    return [
        {
            "title": place.title,
            "icon": place.icon,
            "pages": [page for page in place.pages if sees_all or not page.for_admins],
            "is_open": current in place.pages,
            "current": current,
        }
        for place in PLACES
    ]
