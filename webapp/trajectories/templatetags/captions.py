"""Actions in words, for pages that lie below this application."""

from typing import Any

from django import template

from webapp.trajectories.turn_display import action_caption

register = template.Library()


@register.filter
def caption(action: dict[str, Any] | None) -> str:
    """ "Click 120, 44", "Type “hello”"; empty without an action."""
    return action_caption(action) if action else ""
