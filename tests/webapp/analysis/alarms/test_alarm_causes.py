"""From an alarm to its cause: what explains it, what to look at, what to change, where to start again."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from testing.factories import make_experiment, make_group, make_team, make_trajectory, make_turn, make_user
from training.contracts.config import ExperimentConfig
from training.contracts.trainer_reports import Alarm, StepAlarms
from training.loop import alarms as trainer_guards
from webapp.analysis.alarms.evidence import MOST_TELLING, evidence_of
from webapp.analysis.alarms.onset import onset_of_alarm
from webapp.analysis.alarms.remedies import REMEDIES, checkpoint_before, remedy_of
from webapp.analysis.alarms.root_alarms import brought_about, causes_first, likely_cause
from webapp.analysis.alarms.thresholds import threshold_of
from webapp.experiments.guards import GUARDS
from webapp.experiments.models import AlarmRecord, Experiment, MetricPoint, Stage
from webapp.experiments.services.alarms import record_alarms

pytestmark = pytest.mark.django_db


def fire(
    experiment: Experiment, name: str, *steps: int, value: float = 0.9, limit: float = 0.5
) -> AlarmRecord:
    for step in steps:
        alarm = Alarm(name=name, step=step, value=value, limit=limit, message=f"{name}!", remedy="Look")
        record_alarms(experiment_id=experiment.pk, report=StepAlarms(step=step, alarms=(alarm,)))
    return experiment.alarms.get(name=name)


def test_every_guard_of_the_trainer_is_known() -> None:
    assert set(GUARDS) == {*trainer_guards.GUARDS, "rolled_back"}
    causes = {name for guard in GUARDS.values() for name in guard.brought_about_by}
    assert causes <= set(GUARDS)
    assert set(REMEDIES) <= set(GUARDS)


def test_causes_stand_before_what_they_bring_about() -> None:
    experiment = make_experiment()
    for name in ("zero_variance", "truncation", "parse_collapse"):
        fire(experiment, name, 7)
    alarms = causes_first(experiment.alarms.all())
    assert [alarm.name for alarm in alarms] == ["parse_collapse", "truncation", "zero_variance"]
    parse, truncation, flat = alarms
    assert likely_cause(parse, alarms) is None
    assert likely_cause(truncation, alarms) == likely_cause(flat, alarms) == parse
    assert brought_about(parse, alarms) == [truncation, flat]


def test_a_term_that_a_collapse_saturated_is_no_cause_of_its_own() -> None:
    experiment = make_experiment()
    parse, saturated, flat = (
        fire(experiment, name, 2) for name in ("parse_collapse", "saturated_term", "zero_variance")
    )
    alarms = list(experiment.alarms.all())
    assert likely_cause(saturated, alarms) == likely_cause(flat, alarms) == parse


@pytest.mark.parametrize(
    ("name", "value", "limit", "expected"),
    [
        ("no_update", 5, 5, "5 (limit 5)"),
        ("all_zero_rewards", 4, 3, "4 (limit 3)"),
        ("logprob_gap", 0.02, 0.01, "0.02 (limit 0.01)"),
        ("saturated_term", 1, 0.95, "100.0 % (limit 95.0 %)"),
        ("entropy_collapse", 0.75, 0.5, "75.0 % (limit 50.0 %)"),
        ("endless_successes", 0.6, 0.3, "60.0 % (limit 30.0 %)"),
        ("zero_variance", 1, 0.8, "100.0 % (limit 80.0 %)"),
    ],
)
def test_an_alarms_value_and_limit_stand_in_their_own_unit(
    client: Client, name: str, value: float, limit: float, expected: str
) -> None:
    experiment = make_experiment()
    fire(experiment, name, 6, value=value, limit=limit)
    client.force_login(make_user(team=experiment.team))
    page = client.get(f"/experiments/{experiment.pk}/alarms/{name}/").content.decode()
    assert expected in " ".join(page.split())


@pytest.mark.parametrize("steps", [(20, 21), (1,)], ids=["long after", "over before"])
def test_what_fired_at_another_time_explains_nothing(steps: tuple[int, ...]) -> None:
    experiment = make_experiment()
    fire(experiment, "parse_collapse", *steps)
    flat = fire(experiment, "zero_variance", 7)
    assert likely_cause(flat, list(experiment.alarms.all())) is None


def test_the_most_telling_trajectories_come_first_and_only_from_the_onset() -> None:
    experiment = make_experiment()
    for errors in range(25):
        step = 5 + errors % 5
        make_trajectory(experiment=experiment, turns=0, num_turns=25, num_parse_errors=errors, step=step)
    make_trajectory(experiment=experiment, turns=0, num_parse_errors=25, step=4)
    make_trajectory(experiment=experiment, turns=0, num_parse_errors=25, step=11)
    evidence = evidence_of(fire(experiment, "parse_collapse", *range(5, 12)))
    assert evidence is not None
    assert [row.num_parse_errors for row in evidence.trajectories] == list(range(24, 24 - MOST_TELLING, -1))


def test_groups_without_variance_are_shown_as_groups() -> None:
    experiment, done = make_experiment(), timezone.now()
    of_step = {"experiment": experiment, "step": 3, "num_scored": 2, "finished_at": done}
    flat = make_group(**of_step, reward_mean=0.0, reward_std=0.0)
    make_group(**of_step, reward_mean=0.5, reward_std=0.5)
    evidence = evidence_of(fire(experiment, "zero_variance", 3))
    assert evidence is not None
    assert [card["group"].pk for card in evidence.groups] == [flat.pk]


def test_the_entropy_threshold_is_a_share_of_the_highest_entropy_before() -> None:
    experiment = make_experiment()
    for step, value in enumerate((2.0, 1.0, 0.1, 9.0)):
        MetricPoint.objects.create(experiment=experiment, name="loss/entropy", step=step, value=value)
    alarm = fire(experiment, "entropy_collapse", 2, value=0.95, limit=0.9)
    assert threshold_of(alarm) == pytest.approx(0.2)
    assert threshold_of(fire(experiment, "all_zero_rewards", 2, value=3, limit=3)) == 0
    assert threshold_of(fire(experiment, "stale_checkpoint", 2)) is None
    assert threshold_of(fire(experiment, "grad_norm_explosion", 2, value=-1.0, limit=0.0)) is None


@pytest.mark.parametrize("name", GUARDS)
def test_a_remedy_is_a_config_that_the_form_accepts(name: str) -> None:
    off = {"model": {"fp32_logits": False}, "algorithm": {"max_staleness": 4}}
    settings = ExperimentConfig(**off, optimiser={"name": "muon"})
    experiment = make_experiment(config=settings.model_dump(mode="json"))
    changes = remedy_of(fire(experiment, name, 3)).changes
    assert bool(changes) == (name in REMEDIES and name != "truncation"), changes


@pytest.mark.parametrize("name", ["no_update", "all_zero_rewards"])
def test_where_every_group_fails_demonstrations_are_replayed_and_else_imitated_first(name: str) -> None:
    alone = make_experiment(config={"algorithm": {"num_steps": 30}})
    changes = remedy_of(fire(alone, name, 5)).changes
    assert changes == {
        "replay.enabled": "true",
        "replay.injection": "advantage",
        "replay.max_uses": "30",
        "tasks.curriculum": "solve_rate",
    }
    without_entries = make_experiment(config={"replay": {"enabled": True}})
    assert remedy_of(fire(without_entries, name, 5)).changes == {"sft.enabled": "true"}


def test_where_engine_and_trainer_have_the_same_numbers_finer_ones_are_the_remedy() -> None:
    coarse = make_experiment(config={"model": {"dtype": "bfloat16"}})
    assert remedy_of(fire(coarse, "logprob_drift", 3)).changes == {"model.dtype": "float32"}
    rounded = make_experiment(config={"model": {"dtype": "bfloat16", "fp32_logits": False}})
    assert remedy_of(fire(rounded, "logprob_drift", 3)).changes == {"model.fp32_logits": "true"}
    fine = make_experiment(config={"model": {"dtype": "float32"}})
    assert not remedy_of(fire(fine, "logprob_drift", 3)).changes, "silent where nothing is known to help"


def test_steps_without_an_update_began_with_the_first_of_them() -> None:
    experiment = make_experiment(config={"alarms": {"steps_without_update": 4}})
    assert onset_of_alarm(fire(experiment, "no_update", 6)).step == 3


def test_the_remedy_follows_what_ended_the_trajectories() -> None:
    experiment = make_experiment()
    for limit in ("tokens", "turns", "tokens"):
        make_trajectory(experiment=experiment, turns=0, status="truncated", limit=limit, step=3)
    remedy = remedy_of(fire(experiment, "truncation", 3))
    assert remedy.changes == {"sampling.max_context_tokens": "4096"}

    cut_off = make_trajectory(experiment=experiment, turns=0, num_turns=1, num_parse_errors=1, step=3)
    make_turn(cut_off, 0, parse_error="no action", completion={"text": "{", "finish_reason": "length"})
    remedy = remedy_of(fire(experiment, "parse_collapse", 3))
    assert remedy.changes == {"sampling.max_completion_tokens": "80"}


def test_the_clone_starts_before_the_weights_that_misbehaved() -> None:
    experiment, now = make_experiment(), timezone.now()
    Stage.objects.create(experiment=experiment, name="grpo", position=1, started_at=now - timedelta(hours=1))
    made = {}
    for minutes, step in ((90, 300), (50, 2), (40, 5), (30, 6), (20, 7)):
        made[step] = experiment.checkpoints.create(step=step, policy_version=step, path=f"/none/{step}")
        at = now - timedelta(minutes=minutes)
        experiment.checkpoints.filter(pk=made[step].pk).update(created_at=at)
    alarm = fire(experiment, "parse_collapse", 7)
    assert checkpoint_before(experiment, 7, alarm.since_at) == made[5], (
        "step 7 sampled with the weights after step 6"
    )
    experiment.checkpoints.filter(step__in=[2, 5]).update(deleted_at=now)
    assert checkpoint_before(experiment, 7, alarm.since_at) == made[300], "of the SFT stage"


def test_the_page_needs_few_queries(client: Client, django_assert_max_num_queries) -> None:
    team = make_team()
    experiment = make_experiment(team=team)
    for _ in range(12):
        make_trajectory(experiment=experiment, turns=1, num_parse_errors=1, step=3)
    for name in ("parse_collapse", "truncation"):
        fire(experiment, name, 3)
    client.force_login(make_user("viewer", team=team))
    with django_assert_max_num_queries(12):
        page = client.get(f"/experiments/{experiment.pk}/alarms/parse_collapse/").content.decode()
    assert "Likely led to" in page
    assert "Clone with this remedy" not in page, "a viewer may not launch"
