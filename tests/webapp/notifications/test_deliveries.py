"""Messages to real receivers: tried again, given up, judged, and sent once."""

import base64
import hashlib
import hmac
import json
from io import BytesIO

import pytest
from django.test import Client
from PIL import Image

from testing.notifications import SITE, deliver, due_now, fail_one, grant, rule_of
from webapp.lib.mail_server import MailServer
from webapp.lib.request_values import BadValue
from webapp.live.models import Event
from webapp.notifications.channels import http_post
from webapp.notifications.models import Delivery, DeliveryStatus
from webapp.notifications.services import deliveries, rules

pytestmark = pytest.mark.django_db
KEY = base64.b64encode(b"k" * 32).decode()


def test_a_webhook_is_told_once_and_can_check_who_told_it(admin, receiver, settings):
    grant(settings, "hook-key", f"whsec_{KEY}", receiver.url)
    rule_of(admin, "webhook", f"{receiver.url}/hooks/a", secret="hook-key")
    experiment = fail_one(admin)
    deliver()
    deliver()
    (got,) = receiver.received
    assert got.path == "/hooks/a"
    sent = json.loads(got.body)
    assert sent["type"] == "failed"
    data = sent["data"]
    assert (data["team"], data["experiment"]) == ("home", experiment.pk)
    assert data["title"] == f"Failed: {experiment}"
    assert data["text"] == "CUDA ran out of memory."
    assert data["url"] == f"{SITE}/experiments/{experiment.pk}/"
    signed = f"{got.headers['webhook-id']}.{got.headers['webhook-timestamp']}.".encode() + got.body
    digest = hmac.new(base64.b64decode(KEY), signed, hashlib.sha256).digest()
    assert got.headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"

    # The strip opens without an account, and by its own link only.
    path = data["picture"].removeprefix(SITE)
    answer = Client().get(path)
    strip = Image.open(BytesIO(answer.content))
    assert (answer["content-type"], strip.height, strip.width > 4 * strip.height) == ("image/jpeg", 180, True)
    assert Client().get(path.replace("/pictures/", "/pictures/1")).status_code == 404
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.num_tries, delivery.message) == ("delivered", 1, "")


def test_a_receiver_that_fails_is_tried_again_later_and_then_given_up(admin, receiver):
    rule = rule_of(admin, "webhook", receiver.url)
    other = rule_of(admin, "browser")
    receiver.answers.extend([(500, {}), (429, {"retry-after": "4000"})] + [(503, {})] * 4)
    fail_one(admin)
    deliver()
    delivery = rule.deliveries.get()
    pauses = [due_now(delivery)]
    assert delivery.message == "the receiver answered 500"
    assert other.deliveries.get().status == "delivered"  # which nothing held up
    for _ in range(4):
        deliver()
        pauses.append(due_now(delivery))
    expected = [10, 4000, 300, 1800, 7200]
    assert [0 < wanted - pause.total_seconds() < 300 for pause, wanted in zip(pauses, expected, strict=True)]
    assert all(pause.total_seconds() <= wanted for pause, wanted in zip(pauses, expected, strict=True))
    deliver()
    delivery.refresh_from_db()
    assert (delivery.status, delivery.num_tries, len(receiver.received)) == ("failed", 6, 6)
    assert len({got.headers["webhook-id"] for got in receiver.received}) == 1

    client = Client()
    client.force_login(admin)
    client.post(f"/notifications/deliveries/{delivery.pk}/retry/")
    deliver()
    delivery.refresh_from_db()
    assert (delivery.status, len(receiver.received)) == ("delivered", 7)


def test_a_receiver_that_trickles_or_sends_elsewhere_gets_nowhere(admin, receiver, monkeypatch):
    monkeypatch.setattr(http_post, "DEADLINE_S", 0.5)
    rule = rule_of(admin, "webhook", receiver.url)
    receiver.trickles = True
    fail_one(admin)
    deliver()
    delivery = rule.deliveries.get()
    assert delivery.message == "no answer within 0 s"
    receiver.trickles = False
    receiver.answers.append((302, {"location": f"{receiver.url}/elsewhere"}))
    due_now(delivery)
    deliver()
    delivery.refresh_from_db()
    assert delivery.message == "the receiver answered 302"
    assert [got.path for got in receiver.received] == ["/", "/"]


def test_addresses_and_secrets_are_judged_when_a_rule_is_set_and_when_it_tells(admin, receiver, settings):
    port = receiver.url.rpartition(":")[2]
    with pytest.raises(BadValue, match="secret: the secret 'hook-key' is not granted to the team home"):
        rule_of(admin, "webhook", receiver.url, secret="hook-key")
    for target in (
        "ftp://a.example/x",
        "https://",
        "https://u:p@a.example/",
        "https://{secret}.example/",
        "https://a.example/" + "x" * 1000,
        "http://[",
        "https://a.example:99999/",
        "x",
    ):
        with pytest.raises(BadValue, match="target: "):
            rule_of(admin, "webhook", target)
    grant(settings, "hook-key", KEY, receiver.url)
    by_name = rule_of(admin, "webhook", f"http://127.0.0.1.nip.example.localhost:{port}/")
    known = rule_of(admin, "webhook", receiver.url, secret="hook-key")
    (settings.SECRETS_DIR / "team_grants.json").write_text("{}")
    settings.REMOTE_NETWORKS = ()
    with pytest.raises(BadValue, match="no public address"):
        rule_of(admin, "webhook", receiver.url)
    fail_one(admin)
    deliver()
    assert receiver.received == []
    assert {rule.deliveries.get().status for rule in (by_name, known)} == {DeliveryStatus.FAILED}
    assert known.deliveries.get().message == "this installation no longer allows the rule's target"


def test_a_name_is_looked_up_when_it_is_told_and_its_address_judged_then(
    admin, receiver, settings, monkeypatch
):
    rule = rule_of(admin, "webhook", receiver.url.replace("127.0.0.1", "hooks.example"))
    settings.REMOTE_NETWORKS = ()
    found = [(2, 1, 6, "", ("127.0.0.1", 80))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *names, **more: found)
    fail_one(admin)
    deliver()
    delivery = rule.deliveries.get()
    assert delivery.status == "failed"
    assert delivery.message.startswith("hooks.example is 127.0.0.1, no public address")
    assert receiver.received == []


def test_what_cannot_be_the_name_of_a_host_is_given_up_at_once(admin):
    rule = rule_of(admin, "webhook", f"https://{'a' * 70}.example/hook?key=tOkEn")
    assert str(rule).endswith(".example/…")
    bare = rule_of(admin, "webhook", "https://hooks.example?key=tOkEn")
    assert str(bare) == "Webhook https://hooks.example/…"
    fail_one(admin)
    deliver()
    delivery = rule.deliveries.get()
    assert (delivery.status, "cannot be the name of a host" in delivery.message) == ("failed", True)


def test_a_mail_server_is_named_or_refused():
    server = MailServer.read("smtp://me%40x@mail.example.org?from=a@x.org")
    assert (server.host, server.port, server.user, server.security) == (
        "mail.example.org",
        587,
        "me@x",
        "starttls",
    )
    for text in ("http://x?from=a@b", "smtp://host", "smtp://u:password@host?from=a@b", "smtp://?from=a@b"):
        with pytest.raises(ValueError, match="secret email-password"):
            MailServer.read(text)


def test_a_browser_is_told_by_the_teams_stream(admin):
    rule_of(admin, "browser", has_pictures=False)
    experiment = fail_one(admin)
    deliver()
    sent = Event.objects.get(type="notice.shown", stream=f"notices.{experiment.team_id}").payload
    assert sent["title"] == f"Failed: {experiment}"
    assert sent["url"] == f"{SITE}/experiments/{experiment.pk}/"


def test_a_rule_that_is_off_tells_nothing_of_that_time(admin, receiver):
    rule = rule_of(admin, "webhook", receiver.url)
    rules.switch_rule(rule=rule, is_on=False, by=admin)
    fail_one(admin)
    deliver()
    rules.switch_rule(rule=rule, is_on=True, by=admin)
    deliver()
    assert receiver.received == []


def test_a_broken_sweep_does_not_fill_a_mailbox(admin, receiver, monkeypatch):
    monkeypatch.setattr(deliveries, "MAX_PER_HOUR", 2)
    rule = rule_of(admin, "webhook", receiver.url)
    for number in range(4):
        fail_one(admin, name=f"run {number}")
    deliver()
    assert len(receiver.received) == 2
    assert rule.deliveries.filter(status="dropped").count() == 2
