"""Messages to Slack: blocks, and a URL that stays unknown."""

import json

import pytest
from django.test import Client

from testing.notifications import SITE, deliver, fail_one, grant, rule_of

pytestmark = pytest.mark.django_db


def test_it_gets_blocks_and_its_url_stays_unknown(admin, receiver, settings):
    grant(settings, "chat", "T0/B0/sEcReT", f"{receiver.url}/services")
    rule_of(admin, "slack", f"{receiver.url}/services/{{secret}}", secret="chat")
    experiment = fail_one(admin)
    deliver()
    (slack,) = receiver.received
    assert slack.path == "/services/T0/B0/sEcReT"
    section, image = json.loads(slack.body)["blocks"]
    link = f"*<{SITE}/experiments/{experiment.pk}/|Failed: #{experiment.pk} grip &lt;two&gt; &amp; more¦x>*"
    assert section["text"]["text"] == f"{link}\nCUDA ran out of memory."
    assert "grip &lt;two&gt;" in json.loads(slack.body)["text"]  # where "<!channel>" would wake everybody
    assert Client().get(image["image_url"].removeprefix(SITE)).status_code == 200

    client = Client()
    client.force_login(admin)
    for path in ("/notifications/", "/api/v1/notifications/rules", "/api/v1/notifications", "/audit/"):
        shown = client.get(path).content.decode()
        assert receiver.url in shown or path == "/api/v1/notifications"
        assert "sEcReT" not in shown
