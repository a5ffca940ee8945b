"""Slack: blocks, with the strip of screenshots by its link."""

from typing import Any

from webapp.notifications.channels.contract import Channel, Message, Rule
from webapp.notifications.channels.http_post import post
from webapp.notifications.channels.secret_url import hint, url_of
from webapp.notifications.channels.targets import check_secret_url

MAX_TEXT = 2900
"""Characters that it takes."""


def post_to_slack(rule: Rule, message: Message) -> None:
    """Blocks; the strip by its link, since incoming webhooks take no files. Raises NotDelivered."""
    title, text = _escaped(message.title), _escaped(message.text)[:MAX_TEXT]
    blocks: list[dict[str, Any]] = [
        {"type": "section", "text": {"type": "mrkdwn", "text": f"*<{message.url}|{title}>*\n{text}"}}
    ]
    if message.picture_url:
        blocks.append({"type": "image", "image_url": message.picture_url, "alt_text": "Screenshots"})
    post(rule, url_of(rule), check=check_secret_url, json={"text": title, "blocks": blocks})


def _escaped(text: str) -> str:
    """Slack's three characters with a meaning of their own; the bar would end a link."""
    for char, instead in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "¦")):
        text = text.replace(char, instead)
    return text


SLACK = Channel("Slack", post_to_slack, check_secret_url, hint, is_url=True)
