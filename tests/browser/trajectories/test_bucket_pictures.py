"""Pages show their screenshots from the bucket's own server: the browser follows the signed links."""

from pathlib import Path

import pytest
from django.conf import LazySettings
from django.test import Client
from playwright.sync_api import Browser

from testing.browser.people import People
from testing.browser.recorded_trajectories import Recorder
from testing.factories import make_group
from testing.servers.s3_server import s3_server
from testing.servers.web_server_process import running_web_server
from webapp.lib.media.bucket_address import read_media_storage

pytestmark = pytest.mark.django_db(transaction=True)
PICTURES = "[...document.images].filter(one => one.src.includes('/frames/') && one.naturalWidth > 0).length"


def test_the_browser_gets_screenshots_from_the_bucket(
    people: People,
    browser: Browser,
    redis_server: str,
    child_environment: dict[str, str],
    collected_static: None,
    tmp_path: Path,
    settings: LazySettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with s3_server(tmp_path / "s3") as server:
        variables = {**server.environment, "DESKHAND_STORAGE_BROWSERS": server.url}
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        settings.STORAGES = {**settings.STORAGES, "default": read_media_storage().django_storages["default"]}
        recorder = Recorder(make_group(team=people.team))
        recorder.turn()
        recorder.turn()
        recorder.end()
        client = Client()
        client.force_login(people.viewer)
        cookie = settings.SESSION_COOKIE_NAME
        log = tmp_path / "web.log"
        with running_web_server({**child_environment, **variables}, log) as url:
            context = browser.new_context(base_url=url)
            context.add_cookies([{"name": cookie, "value": client.cookies[cookie].value, "url": url}])
            page = context.new_page()
            asked: list[str] = []
            page.on("request", lambda request: asked.append(request.url))
            for address in ("/trajectories/", f"/trajectories/{recorder.trajectory.pk}/"):
                page.goto(address)
                page.wait_for_function(f"() => {PICTURES} > 0")
            context.close()
    from_bucket = [one for one in asked if one.startswith(f"{server.url}/screens/desk/hand/frames/")]
    assert from_bucket
    assert all("X-Amz-Signature=" in one for one in from_bucket)
