"""Front-end files: from installed packages by an allow-list, served locally, nothing from a CDN."""

import re

import httpx
import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.staticfiles import finders

from testing.paths import REPOSITORY
from webapp.lib.static_files.in_front import StaticFilesInFront
from webapp.lib.static_files.npm_assets import AssetsMissing, PackageFinder

TEMPLATES = sorted((REPOSITORY / "templates").rglob("*.html"))
LOADED_FROM_ELSEWHERE = re.compile(
    r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"'](?:https?:)?//", re.IGNORECASE
)


def test_the_allowed_files_of_packages_are_found_and_no_others():
    assert finders.find("vendor/plotly/plotly-cartesian.min.js")
    assert finders.find("vendor/plotly/package.json") is None
    assert finders.find("vendor/plotly/../package.json") is None


def test_collecting_without_the_packages_says_what_to_run(settings, tmp_path):
    settings.NODE_MODULES = tmp_path
    with pytest.raises(AssetsMissing, match="run `make setup`"):
        list(PackageFinder().list(None))


@pytest.mark.parametrize(
    "template", TEMPLATES, ids=lambda file: str(file.relative_to(REPOSITORY / "templates"))
)
def test_every_static_file_that_a_template_names_exists(template):
    named = re.findall(r"{%\s*static\s+[\"']([^\"'{]+)[\"']", template.read_text())
    assert [name for name in named if not finders.find(name)] == []


def test_every_icon_that_a_template_names_is_drawn():
    drawn = re.findall(r'id="([^"]+)"', (REPOSITORY / "static/img/icons.svg").read_text())
    named = {name for file in TEMPLATES for name in re.findall(r'{% icon "([^"]+)"', file.read_text())}
    assert len(named) > 20
    assert named - set(drawn) == set()


def test_no_template_loads_anything_from_elsewhere():
    assert [file.name for file in TEMPLATES if LOADED_FROM_ELSEWHERE.search(file.read_text())] == []


def test_packages_are_not_committed():
    ignored = (REPOSITORY / ".gitignore").read_text().splitlines()
    assert "/node_modules/" in ignored
    assert not (settings.BASE_DIR / "static" / "vendor").exists()


def test_static_files_are_served_compressed_without_signing_in(web_server):
    answer = httpx.get(f"{web_server}/static/css/base.css", timeout=60)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/css")
    assert answer.headers["content-encoding"] == "gzip"
    assert int(answer.headers["content-length"]) < len(answer.content) / 2
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'self'" in answer.headers["content-security-policy"]


ASKED = {"type": "http", "path": "/static/theme.css", "method": "GET", "scheme": "http"}


@pytest.mark.parametrize(
    ("is_behind_https", "forwarded", "status"),
    [(False, b"", 200), (True, b"https", 200), (True, b"", 418), (True, b"http", 418)],
)
def test_behind_https_plain_requests_for_static_files_are_left_to_what_redirects_them(
    settings, tmp_path, is_behind_https, forwarded, status
):
    (tmp_path / "theme.css").write_text("a {}")
    settings.STATIC_ROOT = tmp_path
    settings.SECURE_SSL_REDIRECT = is_behind_https
    settings.SECURE_HSTS_SECONDS = 60 if is_behind_https else 0
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    sent = []

    async def send(message):
        sent.append(message)

    async def redirects(scope, receive, send):
        await send({"status": 418})

    asked = ASKED | {"headers": [(b"x-forwarded-proto", forwarded)]}
    async_to_sync(StaticFilesInFront(redirects))(asked, None, send)
    assert sent[0]["status"] == status
    if status == 200:
        assert sent[1]["body"] == b"a {}"
        assert (b"strict-transport-security" in dict(sent[0]["headers"])) is is_behind_https
