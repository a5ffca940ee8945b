"""Shapes that many pages repeat, and texts that are longer than a line of a template."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from django import template
from django.db.models import Model
from django.template.defaultfilters import capfirst
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import Truncator

from webapp.ui.templatetags.deskhand import icon, number, percent

register = template.Library()
MAX_CHOICE = 40
"""Characters of a choice of a filter."""


@register.simple_block_tag
def oneline(content: str) -> SafeString:
    """Text over several lines as one, for attributes: a tooltip would show the line breaks."""
    return mark_safe(" ".join(content.split()))  # what is within it was escaped when it was rendered


@register.simple_block_tag
def element(content: str, name: str, classes: str, label: str = "") -> SafeString:
    """An element around its content; nothing where that is empty."""
    words = format_html(' aria-label="{}"', label) if label else ""
    shown = format_html('<{0} class="{1}"{2}>{3}</{0}>', name, classes, words, mark_safe(content))
    return shown if content.strip() else mark_safe("")


@register.simple_block_tag
def panel_head(content: str, title: str, id: str = "") -> SafeString:
    """The head of a panel: its title, and a hint beside it."""
    shown = format_html(' id="{}"', id) if id else ""
    head = '<div class="panel-head"><h2{}>{}</h2><span class="hint">{}</span></div>'
    return format_html(head, shown, title, mark_safe(content))


@register.simple_block_tag
def sheet_head(content: str, id: str) -> SafeString:
    """The head of a dialog: the title that names it, and what closes it."""
    close = '<button type="button" class="btn-icon" data-close-dialog aria-label="Close">{}</button>'
    head = '<header class="sheet-head"><h2 id="{}">{}</h2>{}</header>'
    return format_html(head, id, mark_safe(content), format_html(close, icon("x")))


@register.simple_block_tag
def notice(content: str, tone: str, *, role: str = "", classes: str = "") -> SafeString:
    """A notice of the tone good, info, warning or bad."""
    sign = icon({"good": "check", "info": "info"}.get(tone, "alert"))
    words = format_html(' role="{}"', role) if role else ""
    shown = '<div class="notice tone-{}"{}>{}<div>{}</div></div>'
    return format_html(shown, f"{tone} {classes}".strip(), words, sign, mark_safe(content))


@register.simple_block_tag(takes_context=True)
def empty_state(
    context: template.Context,
    content: str,
    glyph: str,
    title: str,
    *,
    action: str = "",
    url: str = "",
    route: str = "",
) -> SafeString:
    """What stands where a list would: its text, and `action` as a button to `url` or to the page `route`."""
    words = {"glyph": glyph, "title": title, "text": oneline(content), "request": context.get("request")}
    return render_to_string("parts/empty.html", words | {"action": action, "url": url, "route": route})


@register.simple_tag
def styles(*names: str) -> SafeString:
    """Links to style sheets of static/css."""
    links = ((static(f"css/{name}.css"),) for name in names)
    return format_html_join("\n", '<link rel="stylesheet" href="{}">', links)


@register.simple_tag
def thumb(frame: str) -> SafeString:
    """A small screenshot in a list; an empty place without one."""
    image = '<img src="/frames/{}.thumb.jpg" alt="" loading="lazy" decoding="async">'
    return format_html('<span class="thumb">{}</span>', format_html(image, frame) if frame else "")


@register.simple_tag
def list_id(trajectory: Any) -> SafeString:
    """A trajectory in a list: its last screen and its number, which lead to its page."""
    url, shown = reverse("trajectory-detail", args=[trajectory.pk]), thumb(trajectory.list_frame)
    return format_html(
        '<a class="list-id" href="{}">{}<span><b>#{}</b></span></a>', url, shown, trajectory.pk
    )


@register.simple_tag
def heads(*labels: str) -> tuple[str, ...]:
    """Some heads of a `table` whose heads take more than a line: `{% heads ... as NAME %}`."""
    return labels


@register.filter
def share_or_number(value: float | None, is_share: bool) -> str:
    """A value of an objective: a share in percent with one decimal, anything else as a short decimal."""
    return percent(value, 1) if is_share else number(value)


@register.filter
def id_query(rows: Iterable[Model]) -> str:
    """Rows as the query of a page that shows several: "id=3&id=4"."""
    return urlencode([("id", row.pk) for row in rows])


@register.simple_tag
def options(choices: Iterable[object], chosen: object) -> SafeString:
    """The options of a choice: of each value, or of each pair of a value and its label."""
    return format_html_join("\n", "<option{}{}>{}</option>", (_option(each, chosen) for each in choices))


def _option(choice: object, chosen: object) -> tuple[str, str, object]:
    value, label = choice if isinstance(choice, tuple | list) else (choice, choice)
    words = "" if value is label else format_html(' value="{}"', value)
    return words, " selected" if value == chosen else "", label


@register.inclusion_tag("parts/filter_select.html")
def filter_select(
    name: str, label: str, choices: Iterable[Any], value: object, as_is: bool = False
) -> dict[str, object]:
    """A choice that filters a list; `label` stands for none. Words get a capital unless `as_is`.

    A value that is no choice any more, or none yet, is shown too: the list is narrowed to it.
    """
    pairs = [
        one if isinstance(one, tuple) else (one, str(one) if as_is else capfirst(str(one))) for one in choices
    ]
    if value and str(value) not in {str(one) for one, _ in pairs}:
        pairs.append((value, str(value)))
    shown = [(one, Truncator(words).chars(MAX_CHOICE)) for one, words in pairs]
    return {"name": name, "label": label, "choices": shown, "value": value}
