"""Publishing: numbers without gaps in commit order, whatever writes, whether Redis is there or not."""

import json
import threading
import time

import pytest
from channels.layers import get_channel_layer
from django.db import connection, transaction

from webapp.live import broadcast
from webapp.live.event_publishing import MAX_EVENT_BYTES, last_seq, publish, publish_to
from webapp.live.models import Event, Stream
from webapp.live.services import event_pruning
from webapp.live.services.event_pruning import prune_events


def seqs(stream: str) -> list[int]:
    return list(Event.objects.filter(stream=stream).order_by("id").values_list("seq", flat=True))


def sent_to(subscriber, *, within_s: float, number: int = 1) -> list[bytes]:
    """What Redis delivers until there are `number` messages, or the time is over."""
    found: list[bytes] = []
    deadline = time.monotonic() + within_s
    while len(found) < number and (left := deadline - time.monotonic()) > 0:
        if message := subscriber.get_message(timeout=left):
            found.append(message["data"])
    return found


@pytest.mark.django_db
def test_a_new_stream_starts_at_one_and_counts_up():
    assert last_seq("trajectory.1") == 0
    assert [publish("trajectory.1", "turn.added", {"index": i}) for i in range(3)] == [1, 2, 3]
    assert publish("trajectory.2", "turn.added", {}) == 1
    assert last_seq("trajectory.1") == 3
    assert Event.objects.get(stream="trajectory.1", seq=2).payload == {"index": 1}


@pytest.mark.django_db
def test_publishing_takes_one_statement_or_two_of_sqlite(django_assert_num_queries):
    with django_assert_num_queries(1 if connection.vendor == "postgresql" else 2):
        publish("fleet", "worker.joined", {})


@pytest.mark.django_db(transaction=True)
def test_an_event_of_two_streams_is_numbered_in_each_and_sent_to_both_after_the_commit(redis_client):
    publish("experiment.1", "metrics.added", {})
    streams = ["trajectory.1", "experiment.1"]
    layer = get_channel_layer()
    with redis_client.pubsub(ignore_subscribe_messages=True) as subscriber:
        subscriber.subscribe(*(f"deskhand__group__live.{stream}" for stream in streams))
        with transaction.atomic():
            assert publish_to(streams, "turn.added", {"index": 3}) == [1, 2]
            assert sent_to(subscriber, within_s=0.3) == [], "not before the commit"
        first, second = (layer.deserialize(one) for one in sent_to(subscriber, within_s=5.0, number=2))
    assert (first["stream"], first["seq"], first["payload"]) == ("trajectory.1", 1, {"index": 3})
    assert (second["stream"], second["seq"], second["event_type"]) == ("experiment.1", 2, "turn.added")
    assert [seqs(stream) for stream in ("trajectory.1", "experiment.1")] == [[1], [1, 2]]


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["x" * 5000, "\u8868" * 400, "\U0001f600" * 300, '"\\\n' * 900])
def test_a_long_text_is_cut_to_what_an_event_may_hold(text):
    publish("trajectory.1", "trajectory.updated", {"trajectory": 1, "error": text, "status": "errored"})
    payload = Event.objects.get(stream="trajectory.1").payload
    assert (payload["trajectory"], payload["status"]) == (1, "errored")
    assert payload["error"].endswith("\u2026")
    assert text.startswith(payload["error"][:-1])
    event = {"stream": "trajectory.1", "seq": 1, "type": "trajectory.updated", "payload": payload}
    size = len(json.dumps(event))
    assert 0.9 * MAX_EVENT_BYTES < size <= MAX_EVENT_BYTES


@pytest.mark.django_db
def test_several_long_texts_are_all_cut(caplog):
    publish("fleet", "worker.joined", {name: name * 900 for name in "abc"})
    payload = Event.objects.get(stream="fleet").payload
    assert set(payload) == set("abc")
    assert not caplog.records


@pytest.mark.django_db
def test_a_huge_payload_without_texts_loses_its_largest_values_and_that_is_logged(caplog):
    publish("fleet", "worker.joined", {"worker": "env1", "turns": list(range(10_000))})
    assert Event.objects.get(stream="fleet").payload == {"worker": "env1"}
    assert "worker.joined on fleet" in caplog.text
    assert "turns" in caplog.text


@pytest.mark.django_db
def test_characters_that_a_database_cannot_hold_are_shown_as_symbols():
    publish("fleet", "worker.joined", {"error": "a\x00b \ud83d"})
    assert Event.objects.get(stream="fleet").payload == {"error": "a\u2400b \ufffd"}


@pytest.mark.django_db(transaction=True)
def test_a_rolled_back_event_leaves_no_gap_and_is_not_sent():
    def write_and_fail() -> None:
        with transaction.atomic():
            publish("queue", "queue.reordered", {})
            raise ZeroDivisionError

    publish("queue", "queue.reordered", {})
    with pytest.raises(ZeroDivisionError):
        write_and_fail()
    assert publish("queue", "queue.reordered", {}) == 2


@pytest.mark.django_db(transaction=True)
def test_concurrent_writers_give_a_gapless_order_and_create_the_stream_once():
    num_writers, num_each = 6, 15

    def write(writer: int) -> None:
        for index in range(num_each):
            with transaction.atomic():
                publish("experiment.7", "metrics.added", {"writer": writer, "index": index})
        connection.close()

    threads = [threading.Thread(target=write, args=[writer]) for writer in range(num_writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert seqs("experiment.7") == list(range(1, num_writers * num_each + 1))
    for writer in range(num_writers):
        of_writer = Event.objects.filter(payload__writer=writer).order_by("seq")
        assert [event.payload["index"] for event in of_writer] == list(range(num_each))


@pytest.mark.django_db(transaction=True)
def test_a_writer_goes_on_without_redis(settings, caplog):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    broadcast._client.cache_clear()
    try:
        assert publish("fleet", "worker.joined", {}) == 1
        assert publish("fleet", "worker.joined", {}) == 2
    finally:
        broadcast._client.cache_clear()
        broadcast._silent_until = 0.0
    assert "browsers will catch up" in caplog.text
    assert seqs("fleet") == [1, 2]


@pytest.mark.django_db
def test_pruning_keeps_the_numbers(monkeypatch):
    from datetime import timedelta

    monkeypatch.setattr(event_pruning, "PRUNE_CHUNK", 2)
    for _ in range(5):
        publish("fleet", "worker.joined", {})
    assert list(prune_events(older_than=timedelta(days=1))) == []
    assert list(prune_events(older_than=timedelta(seconds=-1))) == [2, 2, 1], "each is a lock of its own"
    assert Stream.objects.get(name="fleet").last_seq == 5
    assert publish("fleet", "worker.joined", {}) == 6
