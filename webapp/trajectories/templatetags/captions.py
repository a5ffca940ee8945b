"""Actions in words, and milestones, for templates of any application."""

from typing import Any

from django import template

from webapp.trajectories import viewer_parts
from webapp.trajectories.action_words import action_caption
from webapp.trajectories.models import Trajectory

register = template.Library()


@register.filter
def caption(action: dict[str, Any] | None) -> str:
    """ "Click 120, 44", "Type “hello”"; empty without an action."""
    return action_caption(action) if action else ""


@register.inclusion_tag("trajectories/parts/milestones.html")
def milestone_lane(trajectory: Trajectory) -> dict[str, Any]:
    """Which milestones of its task a trajectory reached, and when; nothing where the task has none."""
    return viewer_parts.milestone_lane(trajectory)
