"""Links from pages into the documentation: each leads somewhere, and no page of settings is without."""

import json
import re
from pathlib import Path

import pytest
from django.template import Context, Template
from django.test import Client
from django.urls import reverse

from testing.factories import make_team, make_user
from training.contracts.config import ExperimentConfig
from webapp.help.topics import PAGES, TOPICS, topic_of_setting

SETTINGS = (
    *("team-show", "storage-show", "notification-list", "audit-list", "prices", "profile-show"),
    *("fleet-show", "host-add"),
)
LINK = re.compile(r'class="help-link" href="([^"]+)" data-help="([^"]+)"')


def is_there(site: Path, address: str) -> bool:
    page, _, anchor = address.partition("#")
    for name in (f"{page.rstrip('/')}.fjson", f"{page}index.fjson"):
        if (site / name).is_file():
            return not anchor or f'id="{anchor}"' in json.loads((site / name).read_text())["body"]
    return False


def test_every_topic_is_a_heading_of_the_built_site(built_site: Path):
    assert [topic for topic, address in TOPICS.items() if not is_there(built_site, address)] == []


def test_a_heading_that_is_gone_is_noticed(built_site: Path):
    assert is_there(built_site, "docs/using/#replay")
    assert not is_there(built_site, "docs/using/#no-such-heading")
    assert not is_there(built_site, "docs/no-such-page/")


def test_every_section_of_a_config_has_a_topic():
    assert [name for name in ExperimentConfig.model_fields if not topic_of_setting(name)] == []
    assert topic_of_setting("optimiser.learning_rate") == "settings.optimiser"
    assert topic_of_setting("sweep_axes") == ""


def test_pages_name_topics_of_the_table_and_every_topic_is_used():
    assert set(PAGES.values()) <= TOPICS.keys()
    templates = "".join(path.read_text() for path in Path("templates").rglob("*.html"))
    by_tag = set(re.findall(r'help_link "([\w-]+)"', templates))
    plain = {topic for topic in TOPICS if not topic_of_setting(topic.partition(".")[2])}
    assert plain == by_tag | set(PAGES.values())


@pytest.mark.django_db
@pytest.mark.parametrize("route", SETTINGS)
def test_every_page_of_settings_links_to_its_part(client: Client, route: str):
    client.force_login(make_user("admin", team=make_team()))
    page = client.get(reverse(route)).content.decode()
    assert PAGES[route] in {topic for _, topic in LINK.findall(page)}


@pytest.mark.django_db
def test_every_section_of_the_launch_form_links_to_its_part(client: Client):
    client.force_login(make_user("operator", team=make_team()))
    page = client.get(reverse("experiment-launch")).content.decode()
    topics = {topic for _, topic in LINK.findall(page)}
    assert {f"settings.{name}" for name in ExperimentConfig.model_fields} <= topics


@pytest.mark.django_db
def test_a_refusal_of_pre_flight_links_to_the_section_of_its_setting(client: Client):
    client.force_login(make_user("operator", team=make_team()))
    typed = {"preset": "first-desk", "optimiser.learning_rate": "-1"}
    page = client.post(reverse("launch-preflight"), typed).content.decode()
    assert "settings.optimiser" in {topic for _, topic in LINK.findall(page)}


@pytest.mark.django_db
def test_an_empty_list_and_a_refused_page_link_to_the_documentation(client: Client):
    client.force_login(make_user("viewer", team=make_team()))
    empty = client.get(reverse("replay-inbox")).content.decode().partition('class="empty-state"')[2]
    assert (reverse("help-page", args=["docs/using"]) + "#replay", "replay") in LINK.findall(empty)
    refused = client.get(reverse("audit-list"))
    assert refused.status_code == 403
    assert "roles" in {topic for _, topic in LINK.findall(refused.content.decode())}


def test_a_template_cannot_name_a_topic_that_is_not_there():
    with pytest.raises(KeyError):
        Template('{% load help_links %}{% help_link "no-such-topic" %}').render(Context())
