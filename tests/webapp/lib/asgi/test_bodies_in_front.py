"""How much of a body is read before, and after, it is clear who sends it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from webapp.lib.asgi import bodies_in_front
from webapp.lib.asgi.bodies_in_front import SMALL, BodiesInFront

PART = b"x" * 4096


class Exchange:
    """One request to an application that reads its body whole, as Django does."""

    def __init__(self, *, parts: int, limit: int, announces: bool = False, stalls: bool = False) -> None:
        self.parts, self.limit, self.stalls = parts, limit, stalls
        length = [(b"content-length", str(parts * len(PART)).encode())] if announces else []
        self.scope = {"type": "http", "path": "/", "headers": length}
        self.num_read, self.num_asked, self.sent = 0, 0, []

    def limit_of(self, scope: dict[str, Any]) -> int:
        self.num_asked += 1
        return self.limit

    async def receive(self) -> dict[str, Any]:
        if self.stalls and self.num_read:
            await asyncio.sleep(3600)
        self.num_read += 1
        return {"type": "http.request", "body": PART, "more_body": self.num_read < self.parts}

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    async def application(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        while (await receive())["more_body"]:
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    def status(self) -> int:
        asyncio.run(BodiesInFront(self.application, self.limit_of)(self.scope, self.receive, self.send))
        return self.sent[0]["status"]


def test_a_small_body_is_read_and_no_one_is_looked_up():
    exchange = Exchange(parts=SMALL // len(PART), limit=0)
    assert (exchange.status(), exchange.num_asked) == (200, 0)


def test_nothing_is_read_of_a_large_body_that_an_unknown_sender_announces():
    exchange = Exchange(parts=10_000, limit=0, announces=True)
    assert (exchange.status(), exchange.num_read) == (401, 0)
    assert (
        json.loads(exchange.sent[1]["body"])["error"]["message"] == "body: longer than 64 KiB; sign in first"
    )


def test_a_body_of_no_announced_length_is_read_no_further_than_what_anyone_may_send():
    exchange = Exchange(parts=10_000, limit=0)
    assert exchange.status() == 401
    assert exchange.num_read == SMALL // len(PART) + 1


@pytest.mark.parametrize("announces", [True, False])
def test_a_known_sender_may_send_up_to_its_limit(announces):
    enough = Exchange(parts=100, limit=100 * len(PART), announces=announces)
    assert (enough.status(), enough.num_read, enough.num_asked) == (200, 100, 1)
    more = Exchange(parts=101, limit=100 * len(PART), announces=announces)
    assert (more.status(), more.num_read) == (413, 0 if announces else 101)


def test_a_body_whose_next_part_does_not_come_is_given_up(monkeypatch):
    monkeypatch.setattr(bodies_in_front, "STALL_S", 0.05)
    assert Exchange(parts=100, limit=1 << 20, stalls=True).status() == 408


def test_only_so_many_large_bodies_are_read_at_once(monkeypatch):
    monkeypatch.setattr(bodies_in_front, "LARGE_AT_ONCE", 2)
    reading, most = 0, 0

    class Slow(Exchange):
        async def receive(self) -> dict[str, Any]:
            nonlocal reading, most
            reading += self.num_read == 0
            most = max(most, reading)
            await asyncio.sleep(0.002)
            message = await super().receive()
            reading -= not message["more_body"]
            return message

    async def all_at_once() -> list[int]:
        exchanges = [Slow(parts=20, limit=1 << 20, announces=True) for _ in range(6)]
        front = BodiesInFront(exchanges[0].application, exchanges[0].limit_of)
        await asyncio.gather(*(front(one.scope, one.receive, one.send) for one in exchanges))
        return [one.sent[0]["status"] for one in exchanges]

    assert asyncio.run(all_at_once()) == [200] * 6
    assert most == 2
