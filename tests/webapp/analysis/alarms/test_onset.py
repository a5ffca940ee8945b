"""When trouble began, and the remedy that follows from it."""

import pytest

from testing.factories import make_experiment, make_trajectory, make_turn
from training.contracts.trainer_reports import Alarm, StepAlarms
from training.planning.presets import load_preset
from webapp.analysis.alarms.onset import fall_in, onset_of_alarm
from webapp.analysis.alarms.remedies import remedy_of
from webapp.analysis.alarms.suspect_settings import suspect_of
from webapp.experiments.models import AlarmRecord, Experiment, MetricPoint
from webapp.experiments.services.alarms import record_alarms

pytestmark = pytest.mark.django_db


def fire(experiment: Experiment, name: str, step: int) -> AlarmRecord:
    alarm = Alarm(name=name, step=step, value=0.9, limit=0.5, message="!", remedy="Look")
    record_alarms(experiment_id=experiment.pk, report=StepAlarms(step=step, alarms=(alarm,)))
    return experiment.alarms.get(name=name)


def first_desk(**changes: dict[str, object]) -> Experiment:
    """An experiment of the preset, with sections changed."""
    preset = load_preset("first-desk")
    config = preset.config.model_dump(mode="json")
    for section, values in changes.items():
        config[section] |= values
    return make_experiment(config=config, preset="first-desk")


def update(experiment: Experiment, *steps: int, norm: float = 1.0) -> None:
    for step in steps:
        MetricPoint.objects.create(experiment=experiment, name="optimiser/grad_norm", step=step, value=norm)


def babble(experiment: Experiment, step: int) -> None:
    """A trajectory whose only completion was cut off."""
    row = make_trajectory(experiment=experiment, turns=0, num_turns=1, num_parse_errors=1, step=step)
    make_turn(row, 0, parse_error="no action", completion={"text": "{", "finish_reason": "length"})


def test_updates_are_counted_before_the_rollouts_of_the_onset() -> None:
    experiment = first_desk()
    update(experiment, 1, 3)
    update(experiment, 2, norm=0.0)  # nothing to learn from: the weights stayed
    assert onset_of_alarm(fire(experiment, "parse_collapse", 1)).num_updates == 0
    assert onset_of_alarm(fire(experiment, "truncation", 3)).num_updates == 1
    late = onset_of_alarm(fire(experiment, "all_zero_rewards", 3))
    assert (late.step, late.num_updates) == (1, 0), "it fires in the third step without a success"


def test_another_task_set_is_suspect_and_one_with_the_same_train_tasks_is_not() -> None:
    suspect = suspect_of(first_desk(tasks={"task_set": "desk-office"}), before_updates=None)
    assert suspect is not None
    assert suspect.knob.path == "tasks.task_set"
    assert suspect_of(first_desk(tasks={"task_set": "first-desk-choice"}), before_updates=None) is None


def test_a_rate_far_from_the_presets_goes_back_although_completions_are_cut_off() -> None:
    rate = load_preset("first-desk").config.optimiser.learning_rate
    experiment = first_desk(optimiser={"learning_rate": 83 * rate})
    update(experiment, 1)
    babble(experiment, 2)
    suspect = suspect_of(experiment, before_updates=False)
    assert suspect is not None
    assert "learning rate is 83 times that of the preset" in suspect.sentence
    assert remedy_of(fire(experiment, "parse_collapse", 2)).changes == {"optimiser.learning_rate": str(rate)}


def test_a_policy_that_is_sure_because_it_is_sampled_coldly_is_sampled_as_the_preset_does() -> None:
    cold = first_desk(sampling={"temperature": 0.3})
    update(cold, 1, 2, 3)
    assert remedy_of(fire(cold, "settled", 5)).changes == {"sampling.temperature": "1"}


def test_lost_families_come_back_and_the_optimiser_is_left_alone_before_its_first_update() -> None:
    experiment = first_desk(tasks={"families": []}, optimiser={"learning_rate": 1.0})
    babble(experiment, 1)
    families = load_preset("first-desk").config.tasks.families
    changes = remedy_of(fire(experiment, "parse_collapse", 1)).changes
    assert list(changes) == ["tasks.families"]
    assert [name.strip() for name in changes["tasks.families"].split(",")] == list(families)


def test_without_a_suspect_the_optimiser_slows_down_after_an_update_and_never_before() -> None:
    experiment = first_desk()
    babble(experiment, 1)
    assert remedy_of(fire(experiment, "parse_collapse", 1)).changes == {
        "sampling.max_completion_tokens": str(2 * experiment.settings.sampling.max_completion_tokens)
    }
    later = first_desk()
    update(later, 1, 2)
    babble(later, 3)
    half = later.settings.optimiser.learning_rate / 2
    assert remedy_of(fire(later, "parse_collapse", 3)).changes == {"optimiser.learning_rate": str(half)}


@pytest.mark.parametrize(
    ("success", "changed"),
    [
        ([0.58, 0.33, 0.67, 0.5, 0.5], ["tasks.curriculum", "algorithm.group_size"]),
        ([0.58, 0.6, 0.0, 0.0, 0.0], ["optimiser.learning_rate"]),
    ],
    ids=["as good as ever", "fell"],
)
def test_alike_groups_are_the_optimisers_only_where_success_fell(success: list[float], changed: list[str]):
    experiment = first_desk()
    update(experiment, 1, 2)
    for step, value in enumerate(success, start=1):
        MetricPoint.objects.create(experiment=experiment, name="rollout/success", step=step, value=value)
    assert sorted(remedy_of(fire(experiment, "zero_variance", 3)).changes) == sorted(changed)


@pytest.mark.parametrize(
    ("success", "step"),
    [
        ([0.38, 0.0, 0.0, 0.0, 0.0, 0.02], 2),
        ([0.35, 0.5, 0.7, 0.8, 0.3, 0.1, 0.0, 0.0], 5),
        ([0.35, 0.5, 0.7, 0.8, 0.0, 0.0], None),  # two steps are too few
        ([0.35, 0.4, 0.5, 0.1, 0.5, 0.6, 0.5], None),
        ([0.04, 0.02, 0.02, 0.0, 0.0, 0.02], None),  # can be chance
        ([0.0] * 8, None),
        ([0.9], None),
    ],
)
def test_a_fall_of_success_lasts_and_is_no_chance(success: list[float], step: int | None) -> None:
    assert fall_in(list(enumerate(success, start=1)), rollouts_per_step=48) == step
