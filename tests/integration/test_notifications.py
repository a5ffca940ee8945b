"""A whole installation tells a real receiver what rules ask for; one that hangs holds up nothing."""

import json
from pathlib import Path

import httpx
import pytest

from testing.http_receiver import HttpReceiver
from testing.private_installation import Instance
from testing.watch_installation import wait_for

pytestmark = pytest.mark.slow


def signed_in(instance: Instance) -> httpx.Client:
    """The API as the first login's browser has it."""
    username, password = instance.credentials
    browser = httpx.Client(base_url=instance.url, timeout=60)
    browser.get("/login/")
    form = {"username": username, "password": password, "csrfmiddlewaretoken": browser.cookies["csrftoken"]}
    browser.post("/login/", data=form, headers={"Referer": f"{instance.url}/login/"})
    browser.headers.update({"x-csrftoken": browser.cookies["csrftoken"], "Referer": f"{instance.url}/"})
    return browser


def test_a_test_and_a_failure_arrive_while_another_receiver_hangs():
    env = {"DESKHAND_BEAT_FILE": ""}
    with HttpReceiver() as good, HttpReceiver() as bad:
        bad.trickles = True
        with Instance(without=["deskhost", "gpu", "env"], env=env) as instance:
            api = signed_in(instance)
            rules = [
                api.post(
                    "/api/v1/notifications/rules",
                    json={"channel": "webhook", "kinds": ["queue_empty"], "target": receiver.url},
                )
                .raise_for_status()
                .json()
                for receiver in (bad, good)
            ]
            for rule in rules:
                api.post(f"/api/v1/notifications/rules/{rule['id']}/test", json={}).raise_for_status()
            wait_for("the test message", lambda: len(good.received) == 1, patience_s=120)
            run = api.post("/api/v1/experiments", json={"preset": "first-desk", "name": "x", "anyway": True})
            pk = run.raise_for_status().json()["id"]
            api.post(f"/api/v1/experiments/{pk}/cancel", json={}).raise_for_status()
            wait_for("the news", lambda: len(good.received) == 2, patience_s=120)
            ready = api.get("/readyz").json()
            log = Path(instance.folder, "logs", "dispatcher.log").read_text()
    assert [json.loads(got.body)["type"] for got in good.received] == ["test", "queue_empty"]
    assert ready["dispatcher"] == "ok", ready
    assert "Traceback" not in log
