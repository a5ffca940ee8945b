"""Times and sizes of machines; `duration` of the library `deskhand` puts times into words."""

from datetime import datetime, timedelta

from django import template
from django.utils import timezone

register = template.Library()


@register.filter
def age(at: datetime | None) -> timedelta | None:
    """Time since then."""
    return None if not at else timezone.now() - at


@register.filter
def time_left(at: datetime | None) -> timedelta | None:
    """Time until then, not below 0."""
    return None if not at else max(timedelta(0), at - timezone.now())


@register.filter
def gib(mebibytes: float) -> str:
    """MiB as GiB with one decimal."""
    return f"{mebibytes / 1024:.1f}"
