"""Messages to real receivers: an HTTP server, an SMTP server, an event stream."""

import base64
import email
import email.policy
import hashlib
import hmac
import json
from datetime import timedelta
from email.parser import BytesParser
from io import BytesIO

import pytest
from aiosmtpd.controller import Controller
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from PIL import Image

from testing.factories import make_experiment, make_team, make_trajectory, make_user
from testing.http_receiver import HttpReceiver
from training.contracts.remote_addresses import read_networks
from training.contracts.secret_grants import add_grant
from webapp.experiments.models import ExperimentStatus
from webapp.lib.mail_server import MailServer
from webapp.lib.request_values import BadValue
from webapp.lib.supervisor.ports import free_port
from webapp.live.models import Event
from webapp.notifications import outbox, rules
from webapp.notifications.channels import http_post
from webapp.notifications.models import Delivery, DeliveryStatus, Kind, NotificationRule

pytestmark = pytest.mark.django_db
SITE = "http://testserver"
KEY = base64.b64encode(b"k" * 32).decode()


@pytest.fixture(autouse=True)
def installation(settings, tmp_path):
    settings.REMOTE_NETWORKS = read_networks(["127.0.0.0/8"])
    settings.SECRETS_DIR = tmp_path / "secrets"
    settings.SECRETS_DIR.mkdir()


@pytest.fixture
def receiver():
    with HttpReceiver() as found:
        yield found


@pytest.fixture
def admin():
    return make_user("admin", team=make_team("home"), name="ada")


def grant(settings, name: str, value: str, *urls: str) -> None:
    path = settings.SECRETS_DIR / name
    path.touch(mode=0o600)
    path.write_text(value)
    add_grant(settings.SECRETS_DIR, secret=name, team="home", urls=urls)


def rule_of(admin, channel: str, target: str = "", **values) -> NotificationRule:
    team = admin.memberships.get().team
    wish = rules.NewRule(channel=channel, target=target, kinds=[Kind.FAILED], **values)
    return rules.add_rule(team=team, by=admin, site_url=SITE, wish=wish)


def fail_one(admin, name: str = "grip <two> & more|x"):
    """An experiment with five screens that has failed."""
    experiment = make_experiment(team=admin.memberships.get().team, owner=admin, name=name)
    make_trajectory(experiment=experiment, turns=5)
    experiment.status, experiment.ended_at = ExperimentStatus.FAILED, timezone.now()
    experiment.message = "CUDA ran out of memory."
    experiment.save()
    return experiment


def deliver() -> None:
    """What the dispatcher does, in this process."""
    outbox.note_news()
    if (pk := Delivery.next_waiting()) is not None:
        call_command("run_work", "notification", str(pk))


def due_now(delivery: Delivery) -> timedelta:
    """Make it due; how long it had to wait."""
    delivery.refresh_from_db()
    Delivery.objects.filter(pk=delivery.pk).update(next_at=timezone.now())
    return delivery.next_at - timezone.now()


def test_a_webhook_is_told_once_and_can_check_who_told_it(admin, receiver, settings):
    grant(settings, "hook-key", f"whsec_{KEY}", receiver.url)
    rule_of(admin, "webhook", f"{receiver.url}/hooks/a", secret="hook-key")
    experiment = fail_one(admin)
    deliver()
    deliver()
    (got,) = receiver.received
    assert got.path == "/hooks/a"
    told = json.loads(got.body)
    assert told["type"] == "failed"
    data = told["data"]
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
            rule_of(admin, "slack", target)
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


def test_slack_and_discord_get_what_they_take_and_their_urls_stay_unknown(admin, receiver, settings):
    grant(settings, "chat", "T0/B0/sEcReT", f"{receiver.url}/services")
    rule_of(admin, "slack", f"{receiver.url}/services/{{secret}}", secret="chat")
    rule_of(admin, "discord", f"{receiver.url}/api/webhooks/1/tOkEn")
    experiment = fail_one(admin)
    deliver()
    slack, discord = receiver.received
    assert slack.path == "/services/T0/B0/sEcReT"
    section, image = json.loads(slack.body)["blocks"]
    link = f"*<{SITE}/experiments/{experiment.pk}/|Failed: #{experiment.pk} grip &lt;two&gt; &amp; more¦x>*"
    assert section["text"]["text"] == f"{link}\nCUDA ran out of memory."
    assert "grip &lt;two&gt;" in json.loads(slack.body)["text"]  # where "<!channel>" would wake everybody
    assert Client().get(image["image_url"].removeprefix(SITE)).status_code == 200

    assert discord.path == "/api/webhooks/1/tOkEn"
    head = f"content-type: {discord.headers['content-type']}\r\n\r\n".encode()
    parts = {
        part.get_param("name", header="content-disposition"): part
        for part in BytesParser(policy=email.policy.HTTP).parsebytes(head + discord.body).iter_parts()
    }
    told = json.loads(parts["payload_json"].get_content())
    assert told["allowed_mentions"] == {"parse": []}
    assert told["embeds"][0]["image"] == {"url": "attachment://screens.jpg"}
    assert Image.open(BytesIO(parts["files[0]"].get_payload(decode=True))).height == 180

    client = Client()
    client.force_login(admin)
    for path in ("/notifications/", "/api/v1/notifications/rules", "/api/v1/notifications", "/audit/"):
        shown = client.get(path).content.decode()
        assert receiver.url in shown or path == "/api/v1/notifications"
        assert "tOkEn" not in shown
        assert "sEcReT" not in shown


def test_what_cannot_be_the_name_of_a_host_is_given_up_at_once(admin):
    rule = rule_of(admin, "webhook", f"https://{'a' * 70}.example/hook?key=tOkEn")
    assert str(rule).endswith(".example/…")
    bare = rule_of(admin, "webhook", "https://hooks.example?key=tOkEn")
    assert str(bare) == "Webhook https://hooks.example/…"
    fail_one(admin)
    deliver()
    delivery = rule.deliveries.get()
    assert (delivery.status, "cannot be the name of a host" in delivery.message) == ("failed", True)


def test_mail_arrives_with_its_pictures(admin, settings):
    letters = []

    class Mailbox:
        async def handle_DATA(self, server, session, envelope):
            letters.append(envelope)
            return "250 OK"

    port = free_port()
    mailbox = Controller(Mailbox(), hostname="127.0.0.1", port=port)
    mailbox.start()
    try:
        settings.MAIL_SERVER = MailServer.read(f"smtp+plain://127.0.0.1:{port}?from=desk@example.org")
        rule = rule_of(admin, "email", "a@example.org, b@example.org")
        experiment = fail_one(admin, name="two\nlines")
        deliver()
    finally:
        mailbox.stop()
    assert rule.deliveries.get().status == "delivered", rule.deliveries.get().message
    (letter,) = letters
    assert letter.rcpt_tos == ["a@example.org", "b@example.org"]
    mail = email.message_from_bytes(letter.content, policy=email.policy.default)
    assert mail["subject"] == f"[Deskhand] Failed: #{experiment.pk} two lines"
    assert f"{SITE}/experiments/{experiment.pk}/" in mail.get_body(("plain",)).get_content()
    assert "cid:screens" in mail.get_body(("html",)).get_content()
    (picture,) = [part for part in mail.walk() if part.get_content_type() == "image/jpeg"]
    assert picture["content-id"] == "<screens>"
    assert Image.open(BytesIO(picture.get_content())).height == 180

    due_now(rules.send_test(rule=rule, by=admin))  # the mailbox is gone
    deliver()
    assert rule.deliveries.latest("pk").message == "the mail server did not take it (ConnectionRefusedError)"


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
    told = Event.objects.get(type="notice.shown", stream=f"notices.{experiment.team_id}").payload
    assert told["title"] == f"Failed: {experiment}"
    assert told["url"] == f"{SITE}/experiments/{experiment.pk}/"


def test_a_rule_that_is_off_tells_nothing_of_that_time(admin, receiver):
    rule = rule_of(admin, "webhook", receiver.url)
    rules.switch_rule(rule=rule, is_on=False, by=admin)
    fail_one(admin)
    deliver()
    rules.switch_rule(rule=rule, is_on=True, by=admin)
    deliver()
    assert receiver.received == []


def test_a_broken_sweep_does_not_fill_a_mailbox(admin, receiver, monkeypatch):
    monkeypatch.setattr(outbox, "MAX_PER_HOUR", 2)
    rule = rule_of(admin, "webhook", receiver.url)
    for number in range(4):
        fail_one(admin, name=f"run {number}")
    deliver()
    assert len(receiver.received) == 2
    assert rule.deliveries.filter(status="dropped").count() == 2
