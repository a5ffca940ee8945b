"""A value far from the preset's warns before the launch, and a partial YAML keeps the preset's rest."""

import pytest

from testing.factories import make_team
from training.planning.presets import load_preset
from webapp.experiments.knob_values import baseline_of
from webapp.experiments.knobs import ESSENTIALS, knobs, layers
from webapp.launch.form import read_yaml
from webapp.launch.preflight.unusual import unusual_values

pytestmark = pytest.mark.django_db


def first_desk(**changes: dict[str, object]):
    config = load_preset("first-desk").config
    return config.model_copy(
        update={name: getattr(config, name).model_copy(update=values) for name, values in changes.items()}
    )


@pytest.mark.parametrize(("factor", "number"), [(1.0, 0), (9.0, 0), (83.0, 1), (1 / 50, 1)])
def test_a_rate_tenfold_off_the_presets_warns(factor: float, number: int) -> None:
    rate = load_preset("first-desk").config.optimiser.learning_rate
    found = list(unusual_values(first_desk(optimiser={"learning_rate": factor * rate}), "first-desk"))
    assert [check.path for check in found] == ["optimiser.learning_rate"] * number
    assert not list(unusual_values(first_desk(optimiser={"learning_rate": factor * rate}), ""))


def test_many_things_are_told_of_as_many() -> None:
    (check,) = unusual_values(first_desk(evaluation={"num_tasks": 1440}), "first-desk")
    assert check.detail == "The tasks are 20 times those of the preset (1440, there 72)."


def test_a_shorter_run_of_another_seed_is_not_unusual() -> None:
    assert not list(
        unusual_values(first_desk(algorithm={"num_steps": 2}, optimiser={"seed": 977}), "first-desk")
    )


def test_a_partial_text_keeps_what_it_does_not_name() -> None:
    baseline = baseline_of(load_preset("first-desk"))
    draft = read_yaml(
        "optimiser:\n  learning_rate: 0.001\nrewards:\n  preset: task-score.v1\n", baseline, make_team()
    )
    assert draft.errors == {}
    changed = {path: text for path, text in draft.values.items() if text != baseline[path]}
    assert changed == {"optimiser.learning_rate": "0.001", "rewards.preset": "task-score.v1"}


def test_every_knob_stands_in_one_layer() -> None:
    shown = [knob.path for section in layers() for knob in section.knobs]
    assert sorted(shown) == sorted(knob.path for knob in knobs())
    assert shown[: len(ESSENTIALS)] == list(ESSENTIALS)
