"""Discord: an embed, with the strip of screenshots as a file."""

import json
from typing import Any

from webapp.notifications.channels.contract import Channel, Message, Rule
from webapp.notifications.channels.http_post import post
from webapp.notifications.channels.secret_url import hint, url_of
from webapp.notifications.channels.targets import check_secret_url

MAX_TITLE, MAX_TEXT = 256, 4000
"""Characters that it takes."""


def post_to_discord(rule: Rule, message: Message) -> None:
    """An embed, with the strip as a file. Raises NotDelivered."""
    embed: dict[str, Any] = {
        "title": message.title[:MAX_TITLE],
        "url": message.url,
        "description": message.text[:MAX_TEXT],
        "timestamp": message.at.isoformat(),
    }
    content = {"embeds": [embed], "allowed_mentions": {"parse": []}}
    if message.picture is None:
        post(rule, url_of(rule), check=check_secret_url, json=content)
        return
    embed["image"] = {"url": "attachment://screens.jpg"}
    files = {"files[0]": ("screens.jpg", message.picture, "image/jpeg")}
    post(rule, url_of(rule), check=check_secret_url, data={"payload_json": json.dumps(content)}, files=files)


DISCORD = Channel("Discord", post_to_discord, check_secret_url, hint, is_url=True)
