"""What the pages say of an entry for an experiment: its form there, and its policy's age."""

import pytest
from django.test import Client

from testing.factories import (
    make_experiment,
    make_group,
    make_replay_entry,
    make_trajectory,
    make_user,
)
from testing.page_text import page_text
from training.contracts.config import ExperimentConfig
from training.contracts.context_fingerprint import PART_WORDS, write_fingerprint
from training.contracts.trainer_reports import ReplaySkip, SkipReason
from webapp.experiments.queries.weight_lineage import WeightLineage
from webapp.replay.fit_for_experiments import experiments_of, fit_of, fits_of
from webapp.replay.services.injections import record_skips

pytestmark = pytest.mark.django_db


def line(**changes):
    return write_fingerprint(dict.fromkeys(PART_WORDS, "x") | changes)


def experiment_on(team, task=None, replay=None, sampled="", **values):
    config = ExperimentConfig().model_dump(mode="json")
    config["replay"] |= replay or {}
    if task is not None:
        config["tasks"]["task_set"] = task.task_set.name
    experiment = make_experiment(team=team, config=config, **values)
    if sampled:
        make_trajectory(group=make_group(experiment=experiment), fingerprint=sampled)
    return experiment


def entry_of(experiment, fingerprint, **values):
    row = make_trajectory(group=make_group(experiment=experiment), fingerprint=fingerprint, **values)
    return make_replay_entry(trajectory=row, verdict="gold")


def form_and_age(entry, experiment):
    read = experiments_of(entry.team_id).get(pk=experiment.pk)
    found = fit_of(entry, read, WeightLineage(entry.team_id), entry.skips.all())
    return found.form, found.age


@pytest.mark.parametrize(
    ("recorded", "own", "form"),
    [
        (line(), line(), "reused as sampled"),
        (line(), line(tokenizer="y"), "rendered again, likelihood: another tokenizer"),
        (
            line(coordinates="permille", dialect="json", template="a"),
            line(coordinates="screen", dialect="pyautogui", template="b"),
            "rendered again, likelihood: another action dialect, another coordinate space",
        ),
        (None, line(), "rendered again, likelihood: recorded without its tokenizer and prompt"),
        (line(), "", "compatibility known after #{own}'s first rollout"),
    ],
)
def test_the_form_is_told_in_words(team, recorded, own, form):
    recording = experiment_on(team)
    other = experiment_on(team, sampled=own, replay={"unknown_policy_age": "reuse"})
    assert form_and_age(entry_of(recording, recorded), other) == (form.format(own=other.pk), "unknown")
    if own == recorded == line():
        imitated = ("rendered again, likelihood", "unknown")
        assert form_and_age(entry_of(recording, recorded), experiment_on(team, sampled=own)) == imitated, (
            "by default"
        )


def test_the_age_is_told_and_held_against_the_limit(team):
    experiment = experiment_on(team, replay={"max_policy_age": 9}, sampled=line(), policy_version=20)
    assert form_and_age(entry_of(experiment, line(), policy_version=12), experiment) == (
        "reused as sampled",
        "8 versions",
    )
    old = form_and_age(entry_of(experiment, line(), policy_version=3), experiment)
    assert old == ("not used: its policy is older than 9 versions", "17 versions")


@pytest.mark.parametrize(
    ("choice", "form"),
    [
        ("reuse", "reused as sampled"),
        ("likelihood", "rendered again, likelihood"),
        ("skip", "not used: its policy's age is unknown"),
    ],
)
def test_an_unknown_age_is_treated_as_the_experiment_says(team, choice, form):
    entry = entry_of(experiment_on(team), line())
    other = experiment_on(team, replay={"unknown_policy_age": choice}, sampled=line())
    assert form_and_age(entry, other) == (form, "unknown")


def test_a_persons_turns_are_imitated_and_what_was_turned_down_says_why(team):
    experiment = experiment_on(team, sampled=line())
    entry = entry_of(experiment, None, source="human")
    assert form_and_age(entry, experiment) == ("Human demonstration: enters by likelihood", "")
    skip = ReplaySkip(entry_id=entry.pk, reason=SkipReason.NO_ACTION, message="turn 2 has no typed action")
    record_skips(experiment=experiment, skips=[skip, skip])
    assert form_and_age(entry, experiment)[0] == "not used: turn 2 has no typed action (2 times)"


def test_entry_page_and_inbox_tell_it(team, django_assert_max_num_queries):
    user = make_user(team=team, name="anna")
    client = Client()
    client.force_login(user)
    recording = experiment_on(team, name="recorder")
    entry = entry_of(recording, line())
    task = entry.trajectory.task
    same = experiment_on(team, task, sampled=line(), name="same model", cloned_from=recording)
    experiment_on(team, task, sampled=line(tokenizer="y"), name="other model")
    assert [fit.experiment.name for fit in fits_of(entry)] == ["other model", "same model"]
    page = page_text(client.get(f"/replay/{entry.pk}/"))
    for words in (
        "Reused as sampled",
        "Rendered again, likelihood: another tokenizer",
        "0 versions",
        "Unknown",
    ):
        assert words in page
    assert f"#{same.pk} same model" in page
    with django_assert_max_num_queries(14):
        (shown,) = client.get(f"/replay/entries/?ids={entry.pk}").json()["entries"]
    assert any("other model: rendered again" in check["text"] for check in shown["checks"])
