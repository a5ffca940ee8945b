"""Filters of the trajectory pages."""

from django import template
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


@register.filter
def breakable(name: str) -> SafeString:
    """A name_with_underscores that may break after each of them, and nowhere else."""
    return mark_safe(conditional_escape(name).replace("_", "_<wbr>"))  # escaped on this very line
