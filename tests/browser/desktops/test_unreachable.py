"""A page that cannot reach its desktop says why, tries again ever later, and shows it once it is there."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import WebSocket, expect

from testing.browser.people import People, SignIn
from testing.browser.people_at_desktops import LIMIT_S
from testing.factories import make_trajectory
from webapp.screens.models import Screen
from webapp.trajectories.models import Trajectory
from webapp.worker_door.human_control import read_ticket
from workers.desktops.contract import DesktopSpec
from workers.desktops.host.client import DeskHostClient
from workers.env.takeover.vnc_relay import Relay

pytestmark = [pytest.mark.desktop, pytest.mark.django_db(transaction=True)]
WATCHED_MS = 7000
MOST_TRIES = 6
"""In that time: after 0.4, 0.8, 1.6, 3.2 s, each a quarter earlier at the earliest."""


@pytest.fixture
def relay() -> Iterator[Relay]:
    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    made = Relay(folder, read_ticket)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def running(people: People, relay: Relay) -> Trajectory:
    """Its row says that it has a screen; its worker will beat for long."""
    beats_at = timezone.now() + timedelta(hours=1)
    trajectory = make_trajectory(team=people.team, status="running", heartbeat_at=beats_at)
    Screen.objects.create(trajectory=trajectory, addresses=relay.addresses)
    return trajectory


def test_it_says_why_and_its_tries_get_rarer_until_the_desktop_is_there(
    sign_in: SignIn, people: People, running: Trajectory, relay: Relay, desk_client: DeskHostClient
):
    page = sign_in(people.viewer)
    tries: list[WebSocket] = []
    page.on("websocket", lambda opened: tries.append(opened) if "/ws/screens/" in opened.url else None)
    page.goto(f"/trajectories/{running.pk}/desktop/")
    said = "The host refused: the desktop is being prepared. It is tried again."
    expect(page.locator("[data-veil-text]")).to_have_text(said)
    page.wait_for_timeout(WATCHED_MS)
    assert 2 <= len(tries) <= MOST_TRIES
    expect(page.locator("[data-note]")).to_have_text(said)

    lease = desk_client.acquire("x11", DesktopSpec(), holder="test", ttl_s=120)
    try:
        with relay.offered(running.pk, lambda: lease.desktop.endpoints.vnc):
            live = page.locator('#desktop[data-screen="live"]')
            expect(live).to_be_visible(timeout=LIMIT_S * 1000)
            expect(page.locator("[data-screen-pill]")).to_have_text("Live")
    finally:
        desk_client.destroy(lease.desktop.desktop_id)
