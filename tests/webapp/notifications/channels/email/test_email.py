"""Messages to a real mail server."""

import email
import email.policy
from io import BytesIO

import pytest
from aiosmtpd.controller import Controller
from PIL import Image

from testing.notifications import SITE, deliver, due_now, fail_one, rule_of
from webapp.lib.mail_server import MailServer
from webapp.lib.supervisor.ports import free_port
from webapp.notifications.services import rules

pytestmark = pytest.mark.django_db


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
