"""Servers of rented desktops that answer more, or deeper, than anything can hold."""

import pytest

from testing.http_receiver import HttpReceiver
from training.outgoing.remote_addresses import read_networks
from workers.desktops.contract import EnvError
from workers.environments import http_transport
from workers.environments.http_transport import Transport

JSON = {"content-type": "application/json"}


@pytest.fixture
def receiver(settings):
    settings.REMOTE_NETWORKS = read_networks(["127.0.0.0/8"])
    with HttpReceiver() as found:
        yield found


def ask(receiver: HttpReceiver) -> http_transport.Answer:
    transport = Transport(receiver.url, headers={}, timeout_s=10.0, attempts=1)
    try:
        return transport.call("POST", "/step", {})
    finally:
        transport.close()


@pytest.mark.parametrize("body", [b"[" * 200_000, b"\xff", b"9" * 9000, b"[1]"])
def test_what_is_no_json_object_has_no_fields(receiver, body):
    receiver.body = body
    receiver.answers.append((200, JSON))
    answer = ask(receiver)
    assert (answer.status, answer.fields, answer.content) == (200, {}, body)


def test_an_answer_without_end_is_cut_off(receiver, monkeypatch):
    monkeypatch.setattr(http_transport, "MAX_ANSWER_BYTES", 1 << 20)
    receiver.body, receiver.num_bodies = b"x" * 65536, 1_000_000
    receiver.answers.append((200, {}))
    with pytest.raises(EnvError, match="more than 1 MiB"):
        ask(receiver)


def test_a_network_that_is_not_allowed_is_no_server_that_is_tried_again(receiver, settings):
    settings.REMOTE_NETWORKS = ()
    with pytest.raises(EnvError, match="no public address") as caught:
        ask(receiver)
    assert caught.value.permanent
    assert receiver.received == []
