"""Saved reward presets: versions that never change, chosen on the launch form, carried by the config."""

from io import StringIO

import pytest
from django.core.management import call_command

from testing.factories import make_experiment, make_team
from training.contracts.config import RewardConfig, RewardPreset, parse_config
from training.contracts.config.reward_presets import WeightedTerm
from training.planning.presets import load_presets
from webapp.accounts.models import AuditEntry
from webapp.experiments.installation_limits import limit_problems
from webapp.experiments.knob_values import baseline_of
from webapp.experiments.models import Experiment, SavedRewardPreset
from webapp.experiments.queries.reward_presets import preset_names
from webapp.experiments.services.reward_presets import save_preset
from webapp.lib.request_values import BadValue

pytestmark = pytest.mark.django_db
URL = "/experiments/launch/"
FIRST, SECOND = (
    RewardPreset(
        terms=(
            WeightedTerm(term="task_score.v1", weight=1.0),
            WeightedTerm(term="moved", weight=weight, expression="changed", count="mean"),
        )
    )
    for weight in (0.1, 0.2)
)


@pytest.fixture
def team(operator):
    return operator.memberships.get().team


def saved(team, user, definition=FIRST, name="careful") -> SavedRewardPreset:
    return save_preset(team=team, user=user, name=name, definition=definition, alpha=0.3, note="why")


def fields(**changes: str) -> dict[str, str]:
    preset = load_presets()[0]
    basics = {"preset": preset.name, "experiment_name": "My run", "priority": "0", "source": "form"}
    return {**baseline_of(preset), **basics, **changes}


def test_saving_again_is_another_version_and_the_first_one_stays(team, operator):
    saved(team, operator)
    saved(team, operator, SECOND)
    assert preset_names(team)[-2:] == ["careful.v2", "careful.v1"]
    assert SavedRewardPreset.objects.get(version=1).rewards.terms == FIRST
    assert AuditEntry.objects.filter(action="saved", kind="reward", object_id="careful.v2").count() == 1
    assert preset_names(make_team()) == [name for name in preset_names(team) if "careful" not in name]


@pytest.mark.parametrize(
    ("name", "definition", "problem"),
    [
        ("first-desk", FIRST, "name: first-desk is a shipped preset"),
        ("Mine", FIRST, "name: use a-z"),
        ("mine.v1", FIRST, "name: use a-z"),
        (
            "mine",
            RewardPreset(terms=(WeightedTerm(term="wrong", weight=1.0, expression="speed"),)),
            "wrong: column 1",
        ),
    ],
)
def test_what_cannot_be_saved_is_named(team, operator, name, definition, problem):
    with pytest.raises(BadValue, match=problem):
        saved(team, operator, definition, name)
    assert not SavedRewardPreset.objects.exists()


def test_a_preset_chosen_by_name_travels_with_the_config(client, team, operator):
    saved(team, operator)
    page = client.get(URL).content.decode()
    assert "<option>careful.v1</option>" in page
    client.post(URL, fields(**{"rewards.preset": "careful.v1"}))
    rewards = parse_config(Experiment.objects.get().config).rewards
    assert (rewards.preset, rewards.definition) == ("careful.v1", FIRST)


def test_a_launch_from_the_lab_begins_with_the_preset(client, team, operator):
    row = saved(team, operator)
    page = client.get(URL, {"reward": row.pk}).content.decode()
    assert "<option selected>careful.v1</option>" in page
    assert client.get(URL, {"reward": saved(make_team(), operator).pk}).status_code == 404


def test_a_clone_keeps_the_terms_of_a_preset_that_this_team_does_not_have(client, team, operator):
    rewards = RewardConfig(preset="elsewhere.v3", definition=FIRST)
    config = parse_config({"rewards": rewards.model_dump(mode="json")}).model_dump(mode="json")
    origin = make_experiment(team=team, config=config)
    page = client.get(URL, {"clone": origin.pk}).content.decode()
    assert "<option selected>elsewhere.v3</option>" in page
    sent = fields(**{"rewards.preset": "elsewhere.v3", "rewards.definition": FIRST.model_dump_json()})
    client.post(URL, sent)
    assert Experiment.objects.latest("pk").settings.rewards == rewards


@pytest.mark.parametrize("way", ["yaml", "api", "api-changes", "command", "command-changes"])
def test_every_way_to_launch_knows_a_saved_preset_by_its_name(client, team, operator, tmp_path, way):
    saved(team, operator)
    saved(team, operator, SECOND)
    text = "rewards: {preset: careful.v1}"
    if way == "yaml":
        sent = {"preset": "first-desk", "experiment_name": "x", "priority": "0", "source": "yaml"}
        client.post(URL, {**sent, "yaml": text})
    elif way == "api":
        client.post("/api/v1/experiments", {"name": "x", "yaml": text}, content_type="application/json")
    elif way == "api-changes":
        body = {"name": "x", "preset": "first-desk", "config": {"rewards": {"preset": "careful.v1"}}}
        client.post("/api/v1/experiments", body, content_type="application/json")
    elif way == "command":
        (tmp_path / "x.yaml").write_text(text)
        call_command("launch", config=tmp_path / "x.yaml", anyway=True, stdout=StringIO())
    else:
        changes = ["rewards.preset=careful.v1"]
        call_command("launch", preset="first-desk", changes=changes, anyway=True, stdout=StringIO())
    rewards = Experiment.objects.get().settings.rewards
    assert (rewards.preset, rewards.definition) == ("careful.v1", FIRST)


def test_another_teams_preset_is_not_known_by_its_name(client, team, operator):
    saved(make_team(), operator)
    answer = client.post(
        "/api/v1/experiments",
        {"name": "x", "yaml": "rewards: {preset: careful.v1}"},
        content_type="application/json",
    )
    assert answer.status_code == 422
    assert "unknown reward preset 'careful.v1'" in answer.json()["error"]["fields"]["rewards.preset"]


def test_back_to_a_shipped_preset_leaves_the_terms_behind(client, team, operator):
    sent = fields(**{"rewards.preset": "task-score.v1", "rewards.definition": FIRST.model_dump_json()})
    client.post(URL, sent)
    assert Experiment.objects.get().settings.rewards == RewardConfig(preset="task-score.v1")


@pytest.mark.parametrize(
    ("preset", "definition", "problem"),
    [
        ("careful.v1", SECOND, "is not what careful.v1 was saved with"),
        (
            "new.v1",
            RewardPreset(terms=(WeightedTerm(term="wrong", weight=1, expression="speed"),)),
            "wrong: column 1: undeclared",
        ),
    ],
)
def test_every_way_to_launch_refuses_terms_that_explain_nothing(team, operator, preset, definition, problem):
    saved(team, operator)
    rewards = {"preset": preset, "definition": definition.model_dump(mode="json")}
    found = dict(limit_problems(parse_config({"rewards": rewards}), team))
    assert problem in found["rewards.definition"]


def test_an_error_inside_the_terms_is_shown_at_their_field(client, operator):
    broken = '{"terms": [{"term": "task_score.v1", "weight": "heavy"}]}'
    page = client.post(URL, fields(**{"rewards.preset": "x.v1", "rewards.definition": broken}))
    assert page.status_code == 422
    assert "terms.0.weight: must be a number" in page.content.decode()
