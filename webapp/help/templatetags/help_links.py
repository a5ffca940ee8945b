"""Links from a page to the part of the documentation that answers its question."""

from typing import Any

from django import template
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webapp import __version__
from webapp.help.site import FRONT_PAGE, navigation
from webapp.help.topics import PAGES, TOPICS, topic_of_setting

register = template.Library()


@register.simple_tag
def help_link(topic: str, words: str = "Help") -> SafeString:
    """A link to a topic; one that the table lacks is an error of the template."""
    return format_html('<a class="help-link" href="{}" data-help="{}">{}</a>', _address(topic), topic, words)


@register.simple_tag
def setting_help(path: str, words: str = "Help") -> SafeString | str:
    """The link of a setting's section; nothing for a path that is no setting."""
    topic = topic_of_setting(path)
    return help_link(topic, words) if topic else ""


@register.simple_tag(takes_context=True)
def page_help(context: Context, words: str = "Help") -> SafeString | str:
    """The link of the page that is shown; nothing where the table has none."""
    route = _route(context)
    return help_link(PAGES[route], words) if route in PAGES else ""


@register.simple_tag(takes_context=True)
def page_help_address(context: Context) -> str:
    """Where Help of the sidebar leads: to what the page that is shown is about, else to the first page."""
    return _address(PAGES.get(_route(context), "front"))


def _route(context: Context) -> str:
    request = context.get("request")
    match = request.resolver_match if request else None
    return str(match.url_name or "") if match else ""


def _address(topic: str) -> str:
    page, _, anchor = TOPICS[topic].partition("#")
    return reverse("help-page", args=[page.rstrip("/")]) + (f"#{anchor}" if anchor else "")


@register.simple_tag
def product_version() -> str:
    """What this web process runs."""
    return __version__


@register.inclusion_tag("help/parts/navigation.html")
def help_navigation(current: str, contents: str) -> dict[str, Any]:
    """The list of pages, with the headings of the current one below it."""
    return {"parts": navigation(), "current": f"{current or FRONT_PAGE}/", "contents": contents}
