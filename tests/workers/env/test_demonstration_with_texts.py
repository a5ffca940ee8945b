"""A person's demonstration keeps what a policy that reads text would have read, up to replay."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from websockets.asyncio.client import connect

from testing.factories import make_team, make_user
from testing.live_client import session_cookie
from testing.rfb_messages import HELLO
from testing.watch_installation import wait_for
from testing.workers.text_policy import CHOOSE
from training.contracts.types import Source
from webapp.experiments.models import TaskRecord
from webapp.experiments.services.task_sets import import_task_set
from webapp.replay.formats.slime_export import export_line
from webapp.replay.models import ReplayEntry
from webapp.screens.models import Control, ControlStatus
from webapp.screens.rfb.protocol import KeyEvent, key_bytes
from webapp.screens.services import controls
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.row_to_types import trajectory_of
from webapp.trajectories.services.texts import read_text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.desktop, pytest.mark.slow]
ESCAPE = 0xFF1B
"""Presses the dialog's second button, Crimson."""
LIMIT_S = 90


async def press_escape(url: str, cookie: str) -> None:
    """As the page of the screen does: the browser's handshake, then a key."""
    socket = await connect(url, additional_headers={"Cookie": cookie}, origin=origin_of(url))
    async with socket:
        await socket.send(HELLO)
        greeting = b""
        while b"Trajectory" not in greeting:
            async with asyncio.timeout(LIMIT_S):
                greeting += await socket.recv()
        await asyncio.sleep(1)
        await socket.send(key_bytes(KeyEvent(ESCAPE, True)) + key_bytes(KeyEvent(ESCAPE, False)))
        await asyncio.sleep(2)


def origin_of(url: str) -> str:
    return url.replace("ws://", "http://").partition("/ws/")[0]


def in_a_thread(url: str, cookie: str) -> None:
    """Tests of pages may have left a loop running in this one."""
    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(lambda: asyncio.run(press_escape(url, cookie))).result(LIMIT_S)


def test_trees_and_terminals_are_recorded_and_follow_into_replay(web_server, env_thread):
    team = make_team()
    user = make_user("operator", team=team)
    import_task_set(name="texts", origin="test", tasks=[CHOOSE])
    task = TaskRecord.objects.get(task_id=CHOOSE.task_id)
    control = controls.start_demonstration(task=task, team_id=team.pk, user=user, reads_texts=True)
    pk = control.trajectory_id

    def status() -> str:
        return Control.objects.get(pk=control.pk).status

    wait_for("the person's turn", lambda: status() == ControlStatus.HELD, patience_s=LIMIT_S)
    address = f"{web_server.replace('http://', 'ws://')}/ws/screens/{pk}/?control={control.pk}"
    in_a_thread(address, session_cookie(user))
    control.refresh_from_db()
    controls.finish_control(control=control, claim="success")
    wait_for("the score", lambda: Group.objects.get(trajectories=pk).finished_at, patience_s=LIMIT_S)

    row = Trajectory.objects.get(pk=pk)
    assert (row.status, row.score, row.error) == ("terminated", 1.0, "")
    first, last = trajectory_of(row).turns
    assert (first.source, first.action.kind, first.action.keys) == (Source.HUMAN, "key", ("Escape",))
    before, after = first.observation.accessibility, last.observation.accessibility
    assert before is not None
    assert after is not None
    assert 'name="Crimson"' in read_text(before.sha256)
    assert "Crimson" not in read_text(after.sha256)
    assert first.observation.terminal is not None, "no terminal is open, and that is what was read"
    assert first.measured.tree_before == before.num_chars

    entry = ReplayEntry.objects.get(trajectory=row)
    record = json.loads(export_line(entry))
    texts = record["metadata"]["deskhand"]["texts"]
    assert 'name="Crimson"' in texts[before.sha256]
    assert "[Accessibility Tree]\n<desktop-frame" in record["messages"][1]["content"]
