"""WebSocket messages that no page sends: each is answered, and the connection goes on."""

import json

import pytest
from asgiref.sync import sync_to_async
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testing.factories import make_team, make_user
from testing.hostile_values import json_values, texts
from testing.live_client import communicator, open_socket, session_cookie, subscribe

pytestmark = pytest.mark.django_db(transaction=True)

QUICK, THOROUGH = 150, 3000
FIELDS = st.sampled_from(["subscribe", "unsubscribe", "ping", "after"])
STREAMS = st.sampled_from(
    ["fleet", "queue", "team.1", "trajectory.", "trajectory.²", "trajectory." + "9" * 40]
)
MESSAGES = st.one_of(
    st.dictionaries(FIELDS, json_values | STREAMS, max_size=4).map(json.dumps),
    json_values.map(json.dumps),
    texts,
    st.just("[" * 4000),
    st.binary(max_size=40),
)
CONTROLS = ["", "²", "-1", "9" * 40, "1&control=2", "%00", "%ff", "x" * 3000]


def generated(number: int) -> list[str | bytes]:
    """The same messages in every run."""
    found: list[str | bytes] = []

    @settings(
        max_examples=number,
        suppress_health_check=list(HealthCheck),
    )
    @given(MESSAGES)
    def collect(message: str | bytes) -> None:
        found.append(message)

    collect()
    return found


async def answer_all(number: int) -> None:
    user = await sync_to_async(lambda: make_user("viewer", team=make_team()))()
    socket = await open_socket(user)
    messages = generated(number)
    for message in messages:
        kind = "bytes" if isinstance(message, bytes) else "text"
        await socket.send_input({"type": "websocket.receive", kind: message})
        # An unsubscription has no answer; the ping behind each message says that the line is alive.
        await socket.send_json_to({"ping": "alive"})
        answer = await socket.receive_json_from()
        while answer != {"pong": "alive"}:
            answer = await socket.receive_json_from()
    assert "subscribed" in await subscribe(socket, "queue", after=None)
    await socket.disconnect()
    assert len(messages) > number / 2


async def test_every_message_is_answered():
    await answer_all(QUICK)


@pytest.mark.slow
@pytest.mark.postgres
async def test_every_message_is_answered_thoroughly():
    await answer_all(THOROUGH)


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("pk", ["1", "9" * 30])
async def test_a_screen_is_refused_by_its_code_whatever_is_asked(pk, control):
    user = await sync_to_async(lambda: make_user("operator", team=make_team()))()
    cookie = await sync_to_async(session_cookie)(user)
    socket = communicator(cookie, path=f"/ws/screens/{pk}/?control={control}")
    assert (await socket.connect())[0]
    assert (await socket.receive_output())["code"] == 4404
