"""Incoming webhooks of Slack and Discord, and of servers that take the same (Mattermost, Rocket.Chat).

{secret} in the URL stands for the rule's secret: there the URL itself is what no one else may know.
"""

from __future__ import annotations

import json
from typing import Any

from webapp.notifications.channels.http_post import post, secret_of
from webapp.notifications.message import Message
from webapp.notifications.models import NotificationRule
from webapp.notifications.targets import SECRET

SLACK_TEXT, DISCORD_TITLE, DISCORD_TEXT = 2900, 256, 4000
"""Characters that they take."""


def post_to_slack(rule: NotificationRule, message: Message) -> None:
    """Blocks; the strip by its link, since incoming webhooks take no files. Raises NotDelivered."""
    title, text = _escaped(message.title), _escaped(message.text)[:SLACK_TEXT]
    blocks: list[dict[str, Any]] = [
        {"type": "section", "text": {"type": "mrkdwn", "text": f"*<{message.url}|{title}>*\n{text}"}}
    ]
    if message.picture_url:
        blocks.append({"type": "image", "image_url": message.picture_url, "alt_text": "Screenshots"})
    post(rule, _url(rule), json={"text": title, "blocks": blocks})


def post_to_discord(rule: NotificationRule, message: Message) -> None:
    """An embed, with the strip as a file. Raises NotDelivered."""
    embed: dict[str, Any] = {
        "title": message.title[:DISCORD_TITLE],
        "url": message.url,
        "description": message.text[:DISCORD_TEXT],
        "timestamp": message.at.isoformat(),
    }
    told = {"embeds": [embed], "allowed_mentions": {"parse": []}}
    if message.picture is None:
        post(rule, _url(rule), json=told)
        return
    embed["image"] = {"url": "attachment://screens.jpg"}
    files = {"files[0]": ("screens.jpg", message.picture, "image/jpeg")}
    post(rule, _url(rule), data={"payload_json": json.dumps(told)}, files=files)


def _url(rule: NotificationRule) -> str:
    return rule.target.replace(SECRET, secret_of(rule)) if SECRET in rule.target else rule.target


def _escaped(text: str) -> str:
    """Slack's three characters with a meaning of their own; the bar would end a link."""
    for char, instead in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "¦")):
        text = text.replace(char, instead)
    return text
