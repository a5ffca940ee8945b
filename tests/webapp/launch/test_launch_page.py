"""The launch page over HTTP: refusals keep everything, clones show only what changed."""

import json
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from testing.factories import make_experiment, make_team
from testing.page_text import page_text
from training.contracts.config import ExperimentConfig, parse_config, to_yaml
from training.planning.presets import load_presets
from webapp.experiments.knob_values import baseline_of
from webapp.experiments.models import Experiment

pytestmark = pytest.mark.django_db
URL = "/experiments/launch/"


def fields(**changes: str) -> dict[str, str]:
    preset = load_presets()[0]
    basics = {
        "preset": preset.name,
        "experiment_name": "My run",
        "priority": "0",
        "note": "",
        "source": "form",
    }
    return {**baseline_of(preset), **basics, **changes}


def test_every_preset_fills_the_form(client: Client, operator):
    for preset in load_presets():
        page = client.get(URL, {"preset": preset.name})
        assert page.status_code == 200
        assert f'value="{preset.config.algorithm.num_steps}"' in page_text(page)


def test_a_link_to_a_preset_that_there_is_not_says_what_it_shows(client: Client, operator):
    page = page_text(client.get(URL, {"preset": "no-such-desk"}))
    assert f"There is no preset no-such-desk; this is {load_presets()[0].title}." in page
    for query in ({}, {"preset": load_presets()[1].name}):
        assert "There is no preset" not in page_text(client.get(URL, query))


def test_a_valid_form_is_queued_with_the_whole_resolved_config(client: Client, operator):
    answer = client.post(URL, fields(**{"algorithm.group_size": "6", "priority": "3", "note": "why"}))
    experiment = Experiment.objects.get()
    assert answer.url == reverse("experiment-detail", args=[experiment.pk])
    assert parse_config(experiment.config).algorithm.group_size == 6
    assert (experiment.owner, experiment.priority, experiment.note) == (operator, 3, "why")
    assert experiment.preset == load_presets()[0].name


def test_a_refused_form_comes_back_with_what_was_typed(client: Client, operator):
    answer = client.post(
        URL, fields(**{"algorithm.group_size": "1<", "priority": "high", "experiment_name": ""})
    )
    page = page_text(answer)
    assert answer.status_code == 422
    assert 'value="1&lt;"' in page
    assert 'value="high"' in page
    assert "give the experiment a name" in page
    assert not Experiment.objects.exists()


def test_yaml_is_launched_as_it_was_typed(client: Client, operator):
    text = to_yaml(parse_config({"algorithm": {"num_steps": 9}}))
    client.post(URL, fields(source="yaml", yaml=text, **{"algorithm.num_steps": "20"}))
    assert Experiment.objects.get().config["algorithm"]["num_steps"] == 9


def test_a_clone_starts_from_the_other_config_and_shows_what_it_changed(client: Client, operator):
    config = parse_config({"algorithm": {"clip_high": 0.4}}).model_dump(mode="json")
    team = operator.memberships.get().team
    origin = make_experiment(team=team, config=config, preset="first-desk")
    page = page_text(client.get(URL, {"clone": origin.pk}))
    assert f'Clone of <a href="/experiments/{origin.pk}/"' in page
    assert 'name="algorithm.clip_high" value="0.4"' in page
    assert "data-changed-only checked" in page
    client.post(URL, fields(clone=str(origin.pk), **{"algorithm.clip_high": "0.5"}))
    clone = Experiment.objects.latest("id")
    assert (clone.cloned_from, clone.config["algorithm"]["clip_high"]) == (origin, 0.5)


def test_another_teams_experiment_cannot_be_cloned(client: Client, operator):
    assert client.get(URL, {"clone": make_experiment(team=make_team()).pk}).status_code == 404


def test_preflight_names_the_errors_for_the_fields(client: Client, operator):
    page = client.post("/experiments/launch/preflight/", fields(**{"algorithm.clip_low": "x"}))
    assert page.status_code == 200
    start = page_text(page).partition('id="preflight-errors" type="application/json">')[2]
    assert json.loads(start.partition("<")[0]) == {"algorithm.clip_low": "must be a number"}


def test_the_config_of_an_experiment_is_exported_as_yaml(client: Client, operator, tmp_path: Path):
    team = operator.memberships.get().team
    experiment = make_experiment(team=team)
    answer = client.get(reverse("experiment-yaml", args=[experiment.pk]))
    assert "attachment" in answer["Content-Disposition"]
    assert answer.content.decode() == to_yaml(ExperimentConfig())
