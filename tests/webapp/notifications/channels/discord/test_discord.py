"""Messages to Discord: an embed with its file, and a URL that stays unknown."""

import email
import email.policy
import json
from email.parser import BytesParser
from io import BytesIO

import pytest
from django.test import Client
from PIL import Image

from testing.notifications import deliver, fail_one, rule_of

pytestmark = pytest.mark.django_db


def test_it_gets_an_embed_and_its_url_stays_unknown(admin, receiver):
    rule_of(admin, "discord", f"{receiver.url}/api/webhooks/1/tOkEn")
    fail_one(admin)
    deliver()
    (discord,) = receiver.received
    assert discord.path == "/api/webhooks/1/tOkEn"
    head = f"content-type: {discord.headers['content-type']}\r\n\r\n".encode()
    parts = {
        part.get_param("name", header="content-disposition"): part
        for part in BytesParser(policy=email.policy.HTTP).parsebytes(head + discord.body).iter_parts()
    }
    payload = json.loads(parts["payload_json"].get_content())
    assert payload["allowed_mentions"] == {"parse": []}
    assert payload["embeds"][0]["image"] == {"url": "attachment://screens.jpg"}
    assert Image.open(BytesIO(parts["files[0]"].get_payload(decode=True))).height == 180

    client = Client()
    client.force_login(admin)
    for path in ("/notifications/", "/api/v1/notifications/rules", "/api/v1/notifications", "/audit/"):
        shown = client.get(path).content.decode()
        assert receiver.url in shown or path == "/api/v1/notifications"
        assert "tOkEn" not in shown
