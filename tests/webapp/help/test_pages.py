"""Pages of the documentation inside the product: what they show, what they refuse, and their search."""

import json
import re
from pathlib import Path

import pytest
from django.test import Client
from django.utils.html import escape

from testing.factories import make_user
from testing.paths import REPOSITORY
from webapp import __version__
from webapp.help.views import MAX_QUERY

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(client: Client) -> Client:
    client.force_login(make_user("viewer"))
    return client


def test_the_front_page_lists_every_page_and_each_opens(reader: Client, site: Path):
    page = reader.get("/help/", follow=True)
    assert page.status_code == 200
    urls = [
        one["url"] for part in json.loads((site / "navigation.json").read_text()) for one in part["pages"]
    ]
    assert {"README/", "docs/tasks/", "docs/settings/", "CHANGELOG/"} <= set(urls)
    for url in urls:
        assert f'href="/help/{url}"' in page.content.decode()
        assert reader.get(f"/help/{url}").status_code == 200


def test_a_page_has_one_heading_our_frame_and_runs_no_script_of_its_own(reader: Client, site: Path):
    response = reader.get("/help/docs/tasks/")
    page = response.content.decode()
    assert page.count("<h1") == 1
    assert 'id="setup-verbs"' in page
    assert 'class="sidebar"' in page
    assert "script-src 'self'" in response["Content-Security-Policy"]
    article = page.partition('class="help-article"')[2].partition("</article>")[0]
    assert "<script" not in article
    assert " onclick" not in article


def test_every_picture_of_a_page_is_served(reader: Client, site: Path):
    page = reader.get("/help/README/").content.decode()
    pictures = re.findall(r'<img[^>]+src="\.\./(_images/[^"]+)"', page)
    assert pictures
    for name in pictures:
        response = reader.get(f"/help/{name}")
        assert response.status_code == 200
        assert response["Content-Type"].startswith("image/")
        assert "sandbox" in response["Content-Security-Policy"]


@pytest.mark.parametrize(
    "name", ["_images/../../outside.txt", "_downloads/../../doctrees/environment.pickle", "_images/no.png"]
)
def test_nothing_outside_the_site_is_served(reader: Client, site: Path, name: str):
    (site.parent / "outside.txt").write_text("outside")
    assert reader.get(f"/help/{name}").status_code in {400, 404}


def test_a_page_outside_the_site_is_none(reader: Client, site: Path):
    (site.parent / "outside.fjson").write_text('{"title": "no", "body": "<h1>no</h1>", "toc": ""}')
    assert reader.get("/help/../outside/").status_code == 404
    assert reader.get("/help/docs/../../outside/").status_code == 404


def test_search_finds_sections_by_all_words_and_marks_them(reader: Client, site: Path):
    page = reader.get("/help/search/", {"q": "optimiser learning_rate"}).content.decode()
    assert 'href="/help/docs/settings/#optimiser"' in page
    assert "<mark>" in page
    none = reader.get("/help/search/", {"q": "learning zzzyx"}).content.decode()
    assert "No page has all of these words" in none


@pytest.mark.parametrize(
    "text",
    [
        '"',
        "optimiser OR zzzyx",
        "NEAR(zzzyx",
        "x*zzzyx",
        "'; DROP TABLE sections; zzzyx",
        "−",
        "é" * 500,
        "{page : zzzyx",
    ],
)
def test_a_search_reads_signs_of_its_language_as_text(reader: Client, site: Path, text: str):
    page = reader.get("/help/search/", {"q": text}).content.decode()
    assert f"Search: {escape(text[:MAX_QUERY])}" in page
    assert "No page has all of these words" in page


@pytest.mark.parametrize("text", ['"optimiser', "optimiser)", "{optimiser :", "-optimiser*", "'; optimiser"])
def test_signs_around_a_word_do_not_hide_it(reader: Client, site: Path, text: str):
    page = reader.get("/help/search/", {"q": text}).content.decode()
    assert 'href="/help/docs/settings/#optimiser"' in page


def test_a_searched_word_is_shown_as_text(reader: Client, site: Path):
    page = reader.get("/help/search/", {"q": "<script>alert(1)</script>"}).content.decode()
    assert "<script>alert(1)" not in page


def test_without_a_built_site_the_page_says_what_to_run(reader: Client, monkeypatch, tmp_path: Path):
    monkeypatch.setattr("webapp.help.site.SITE", tmp_path)
    response = reader.get("/help/docs/")
    assert response.status_code == 404
    assert "make setup" in response.content.decode()
    assert reader.get("/help/search/", {"q": "reward"}).status_code == 200


def test_people_sign_in_first(client: Client, site: Path):
    for path in ("/help/docs/", "/help/search/?q=x", "/help/_images/viewer.png"):
        assert client.get(path).status_code == 302


def test_the_version_stands_in_the_sidebar_and_in_healthz(reader: Client):
    assert f"Deskhand {__version__}" in reader.get("/experiments/").content.decode()
    assert reader.get("/healthz").json()["version"] == __version__
    assert f"\n## {__version__} (" in (REPOSITORY / "CHANGELOG.md").read_text()
