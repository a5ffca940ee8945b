"""Chromium over a private installation, signed in with its first login."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from testing import loop_guard

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

VIEWPORT = (1280, 800)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium; as root its own sandbox cannot start."""
    from playwright.sync_api import sync_playwright  # hosts that only measure have none

    with sync_playwright() as playwright:
        loop_guard.exempt_main_thread()
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@contextmanager
def chromium_page() -> Iterator[Page]:
    """A page in a browser of its own."""
    with chromium() as browser:
        yield browser.new_page(viewport={"width": VIEWPORT[0], "height": VIEWPORT[1]})


class Reachable(Protocol):
    """An installation with pages and a first login."""

    @property
    def url(self) -> str: ...
    @property
    def credentials(self) -> tuple[str, str]: ...


def sign_in(page: Page, deskhand: Reachable) -> None:
    """With the login that the installation made at its first start."""
    log_in(page, deskhand, *deskhand.credentials)


def log_in(page: Page, deskhand: Reachable, username: str, password: str) -> None:
    page.goto(f"{deskhand.url}/login/")
    page.fill("[name=username]", username)
    page.fill("[name=password]", password)
    page.press("[name=password]", "Enter")
    page.wait_for_url(lambda url: "login" not in url)
