"""A POST of JSON, signed as https://www.standardwebhooks.com has it: receivers check it by ready libraries.

webhook-id: deskhand-12-x    webhook-timestamp: 1763900000
webhook-signature: v1,BASE64 of HMAC-SHA256(key, "ID.TIMESTAMP.BODY")
"""

import base64
import binascii
import hashlib
import hmac
import json
import time

from webapp.notifications.channels.contract import Channel, Message, NotDelivered, Rule
from webapp.notifications.channels.http_post import post, secret_of
from webapp.notifications.channels.targets import check_signed_url

PREFIX = "whsec_"


def post_to_webhook(rule: Rule, message: Message) -> None:
    """Raises NotDelivered."""
    data = {
        "title": message.title,
        "text": message.text,
        "url": message.url,
        "team": message.team,
        "experiment": message.experiment_id,
        "picture": message.picture_url or None,
    }
    payload = {"type": message.kind, "timestamp": message.at.isoformat(), "data": data}
    body = json.dumps(payload).encode()
    at = str(int(time.time()))
    headers = {"webhook-id": message.id, "webhook-timestamp": at}
    if key := secret_of(rule):
        headers["webhook-signature"] = signature(key, message.id, at, body)
    headers["content-type"] = "application/json"
    post(rule, rule.target, check=check_signed_url, content=body, headers=headers)


def signature(key: str, message_id: str, at: str, body: bytes) -> str:
    """The header's value; `key` is base64, as `openssl rand -base64 32` prints it. Raises NotDelivered."""
    try:
        secret = base64.b64decode(key.removeprefix(PREFIX), validate=True)
    except binascii.Error as error:
        problem = "the secret is not base64; make one by: openssl rand -base64 32"
        raise NotDelivered(problem, is_permanent=True) from error
    digest = hmac.digest(secret, f"{message_id}.{at}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode()}"


WEBHOOK = Channel("Webhook", post_to_webhook, check_signed_url, lambda: "https://…", is_url=True, signs=True)
