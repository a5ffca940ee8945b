"""A desktop of a running agent in Chromium: held by one person, watched by another, through noVNC alone."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

from testing.browser.chromium import VIEWPORT, chromium, log_in, sign_in
from testing.containers.engine import Site
from testing.watch_installation import rows, wait_for

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LIMIT_S = 300
"""Also where the machine has other work."""
SAMPLED_S = 600
"""Until trajectories of the experiment are queued; between two steps none is."""
PIXELS = "document.querySelector('[data-screen] canvas')?.toDataURL('image/png') ?? ''"
LEAST_PICTURE = 5000
"""Characters: a canvas of one colour is shorter."""
SCREEN = "document.querySelector('#desktop')?.dataset.screen ?? ''"
WATCHER = """
from django.contrib.auth.models import User
from webapp.accounts.models import Membership, Role, Team
watcher = User.objects.create_user("watcher", password="{password}")
Membership.objects.create(user=watcher, team=Team.objects.get(), role=Role.VIEWER)
"""


def watch_and_take_over(site: Site, experiment: int) -> dict[str, Any]:
    """A person's letters reach the desktop, the watcher sees them, and they are that person's turns."""
    from playwright.sync_api import Error

    try:
        with chromium() as browser:
            return _watch_and_take_over(site, browser, experiment)
    except Error as error:
        raise AssertionError(str(error)) from error


def _watch_and_take_over(site: Site, browser: Browser, experiment: int) -> dict[str, Any]:
    password = secrets.token_hex(12)
    site.manage("shell", "-c", WATCHER.format(password=password))
    operator, watcher = (_page(browser) for _ in range(2))
    sign_in(operator, site)
    log_in(watcher, site, "watcher", password)
    began = time.monotonic()
    number = _hold_next(site, operator, experiment)
    _wait_state(operator, "control")
    held_s = time.monotonic() - began
    watcher.goto(operator.url)
    _wait_state(watcher, "live")
    wait_for("a picture", lambda: len(watcher.evaluate(PIXELS)) > LEAST_PICTURE, patience_s=LIMIT_S)
    before = watcher.evaluate(PIXELS)
    operator.locator("[data-screen] canvas").focus()
    operator.keyboard.type("blue hen", delay=30)
    operator.keyboard.press("Control+s")
    wait_for("turns of a person", lambda: turns_of_person(site, number), patience_s=LIMIT_S)
    wait_for("another picture", lambda: watcher.evaluate(PIXELS) != before, patience_s=LIMIT_S)
    found = {"held_s": round(held_s, 1), "turns_of_person": turns_of_person(site, number)}
    operator.keyboard.press("Shift+Escape")
    operator.keyboard.press("b")
    wait_for("its end", lambda: state(operator) == "ended", patience_s=LIMIT_S)
    return found


def _page(browser: Browser) -> Page:
    """In a session of its own."""
    size = {"width": VIEWPORT[0], "height": VIEWPORT[1]}
    page = browser.new_context(viewport=size).new_page()
    page.set_default_timeout(LIMIT_S * 1000)
    return page


def _hold_next(site: Site, page: Page, experiment: int) -> int:
    """By the button of the experiment's page; the trajectory's number."""
    deadline = time.monotonic() + SAMPLED_S
    while time.monotonic() < deadline:
        wait_for("queued ones", lambda: _is_sampling(site, experiment), patience_s=SAMPLED_S, poll_s=0.1)
        page.goto(f"{site.url}/experiments/{experiment}/?tab=desktops")
        page.get_by_role("button", name="Hold the next desktop").click()
        page.wait_for_load_state()
        if "/desktop/" in page.url:
            return int(page.url.rstrip("/").split("/")[-2])
    raise AssertionError(f"no desktop could be held within {SAMPLED_S} s")


def _is_sampling(site: Site, experiment: int) -> bool:
    waiting = f"experiment_id = {experiment} and status in ('queued', 'resetting')"
    return bool(rows(site, f"select id from trajectories_trajectory where {waiting} limit 1"))


def _wait_state(page: Page, wanted: str) -> None:
    def is_there() -> bool:
        assert (now := state(page)) != "ended", f"it ended before it was {wanted}"
        return now == wanted

    wait_for(wanted, is_there, patience_s=LIMIT_S)


def state(page: Page) -> str:
    return str(page.evaluate(SCREEN))


def turns_of_person(site: Site, number: int) -> int:
    of_person = f"trajectory_id = {number} and source = 'human'"
    return int(rows(site, f"select count(*) from trajectories_turnrecord where {of_person}")[0][0])
