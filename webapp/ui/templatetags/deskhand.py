"""Tags and filters that every page uses: icons, badges, times, numbers with their unit, URLs with filters."""

import re
from datetime import datetime, timedelta
from functools import cache
from itertools import chain
from typing import Any

from django import template
from django.conf import settings
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from training.contracts.number_text import (
    counted_of,
    duration_range_text,
    duration_text,
    fixed_text,
    percent_digits,
    rough_duration_text,
    share_text,
    short_text,
)
from training.contracts.stage_names import STAGE_LABELS
from webapp.lib import disk_room
from webapp.lib.byte_text import size_text
from webapp.ui.tones import TONES

register = template.Library()

INDENTATION = re.compile(r"\s*\n\s*")
MISSING = (None, "")
"""Also what Django's templates make of an attribute of None."""


@cache
def logo_drawing() -> SafeString:
    """What stands behind its "<svg". Read when a page shows it: workers have no files of pages."""
    file = settings.BASE_DIR / "static" / "img" / "favicon.svg"
    return SafeString(file.read_text().removeprefix("<svg "))


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    """One symbol of static/img/icons.svg, sized by the text around it."""
    return format_html(
        '<svg class="icon {}" aria-hidden="true"><use href="{}#{}"/></svg>',
        extra,
        static("img/icons.svg"),
        name,
    )


@register.simple_tag
def logo(size: int) -> SafeString:
    """The drawing of static/img/favicon.svg, in the page: as an image it holds up the first paint."""
    return format_html('<svg width="{0}" height="{0}" aria-hidden="true" {1}', size, logo_drawing())


@register.filter
def tone(status: str) -> str:
    """Colour family of a status word, for `badge-tone-*` and `tone-*` classes."""
    return TONES.get(str(status), "neutral")


@register.inclusion_tag("parts/status_badge.html")
def status_badge(status: str, label: str = "") -> dict[str, str]:
    """A dot and the status in words."""
    return {"status": str(status), "tone": tone(status), "label": label or str(status).capitalize()}


@register.inclusion_tag("parts/disk_shortages.html")
def disk_shortages() -> dict[str, list[disk_room.Shortage]]:
    """Which folders have too little room, so that new work waits; nothing otherwise."""
    return {"shortages": disk_room.shortages()}


@register.simple_block_tag
def table(content: str, name: str, *heads: str | tuple[str, ...], exports: bool = True) -> SafeString:
    """The rows within it as a dense table that scrolls sideways; `name` is one more class, or empty.

    A head is its label, with classes in front ("num|Step") or unseen ("hidden|Actions"); none = no heads.
    An empty one is left out.
    """
    each = chain.from_iterable((head,) if isinstance(head, str) else head for head in heads)
    split = [(before, label) for before, _, label in (head.rpartition("|") for head in each if head)]
    shown = [
        {"label": label, "classes": "" if before == "hidden" else before, "is_hidden": before == "hidden"}
        for before, label in split
    ]
    context = {"name": name, "heads": shown, "rows": unindented(content), "exports": exports and shown}
    return render_to_string("parts/table.html", context)


def unindented(rows: str) -> SafeString:
    """Without the indentation of the template, which in a long table weighs as much as its words."""
    return mark_safe(INDENTATION.sub("\n", rows))


@register.filter
def since(at: datetime | None) -> SafeString | str:
    """Relative time that static/js/lib/relative_times.js keeps fresh; there it gets the absolute one, too."""
    if at in MISSING:
        return "—"
    text = relative(timezone.now() - at)
    return format_html('<time datetime="{}" data-since>{}</time>', at.isoformat(timespec="seconds"), text)


def relative(age: timedelta) -> str:
    """ "just now", "40 s ago", "5 min ago", "3 h ago", "2 d ago"; the same words as times.js."""
    seconds = int(age.total_seconds())
    if seconds < 0:
        return "now"
    for limit, unit, size in ((60, "s", 1), (3600, "min", 60), (86_400, "h", 3600)):
        if seconds < limit:
            return "just now" if seconds < 3 else f"{seconds // size} {unit} ago"
    return f"{seconds // 86_400} d ago"


@register.filter
def duration(value: timedelta | float | None) -> str:
    """Seconds as "850 ms", "12 s", "3 min 20 s" or "2 h 5 min"."""
    if value in MISSING:
        return "—"
    return duration_text(value.total_seconds() if isinstance(value, timedelta) else float(value))


@register.filter
def range_to(low: float, high: float) -> str:
    """Two estimated durations in seconds: "10 to 15 min"."""
    return duration_range_text(low, high)


@register.filter
def rough_duration(seconds: float | None) -> str:
    """Estimated seconds, to what an estimate can know: "40 s", "7 min", "25 min"."""
    return "—" if seconds in MISSING else rough_duration_text(seconds)


@register.filter
def elapsed(at: datetime | None) -> SafeString | str:
    """How long ago, as a duration that static/js/lib/relative_times.js keeps fresh."""
    if at in MISSING:
        return "—"
    text = duration(timezone.now() - at)
    return format_html('<time datetime="{}" data-elapsed>{}</time>', at.isoformat(), text)


@register.filter
def size(num_bytes: float | None) -> str:
    """Bytes as "812 B", "3.4 MB" or "1.2 GB" (powers of 1000)."""
    return "—" if num_bytes is None or num_bytes == "" else size_text(num_bytes)


@register.filter
def percent(fraction: float | None, digits: int = 0) -> str:
    """0.417 as "42 %"."""
    return "—" if fraction in MISSING else share_text(fraction, digits)


@register.filter
def css_percent(fraction: float | None) -> str:
    """0.417 as "41.7%", for style attributes (a length with a space is none)."""
    return "0%" if fraction in MISSING else f"{fraction * 100:.1f}%"


@register.filter
def interval(bounded: Any) -> str:
    """Its 95 % interval in percent, to stand behind the success: "[44, 58]"."""
    return f"[{percent_digits(bounded.low)}, {percent_digits(bounded.high)}]"


@register.filter
def sampling(temperature: float | None) -> str:
    """How an evaluation chose completions: "greedy", "sampled (T = 0.8)", or "sampled" of old ones."""
    if temperature in MISSING:
        return "sampled"
    return f"sampled (T = {temperature:g})" if temperature else "greedy"


@register.filter
def signed(value: float | None) -> str:
    """Two decimals with the sign, as rewards and advantages are shown; a real minus sign, none at 0.00."""
    return with_sign(value, 2)


def with_sign(value: float | None, digits: int) -> str:
    """A number with its sign, or a dash."""
    return "—" if value in MISSING else fixed_text(value, digits, signed=True)


@register.filter
def number(value: float | None) -> str:
    """A short decimal: three significant digits, no trailing zeros; thousands with a comma."""
    return "—" if value in MISSING else short_text(value)


@register.filter
def fixed(value: float | None, digits: int = 2) -> str:
    """With the given decimals, without a plus: scores, means, shares of 1."""
    return "—" if value in MISSING else fixed_text(value, digits)


@register.filter
def counted(number: int, many: str) -> str:
    """A number with its noun, which is written in the plural: 1 and "entries" are "1 entry"."""
    return counted_of(number, many)


@register.filter
def folder_name(path: str) -> str:
    """Last part of a path."""
    return path.rstrip("/").rpartition("/")[2]


@register.filter
def get_item(mapping: dict[Any, Any], key: Any) -> Any:
    """Value of a key that is only known at run time."""
    return mapping.get(key)


@register.simple_tag(takes_context=True)
def query(context: template.Context, **changes: Any) -> str:
    """This page's query string with some parameters replaced; empty or None removes one. Starts with "?"."""
    params = context["request"].GET.copy()
    for name, value in changes.items():
        if value in (None, ""):
            params.pop(name, None)
        else:
            params[name] = value
    return "?" + params.urlencode()


@register.filter
def stage_title(name: str) -> str:
    """The stage's name for people."""
    return STAGE_LABELS.get(name, name.replace("-", " ").capitalize())
