"""The form that is generated from the config: every knob, texts both ways, errors by name."""

import pytest
from django.http import QueryDict

from training.contracts.config import ExperimentConfig, from_yaml, parse_config
from webapp.accounts.models import Team
from webapp.experiments.knob_values import (
    baseline_of,
    changed_knobs,
    flatten,
    nested,
)
from webapp.experiments.knobs import knobs
from webapp.launch.form import read_form, read_yaml

DEFAULTS = baseline_of(None)


def post(**changes: str) -> QueryDict:
    query = QueryDict(mutable=True)
    query.update({**DEFAULTS, **{path.replace("__", "."): text for path, text in changes.items()}})
    return query


def paths(model: type, prefix: str = "") -> set[str]:
    """Dotted names of all fields, those of sections within sections too."""
    found: set[str] = set()
    for name, info in model.model_fields.items():
        is_section = hasattr(info.annotation, "model_fields")
        found |= paths(info.annotation, f"{prefix}{name}.") if is_section else {f"{prefix}{name}"}
    return found


def test_every_field_of_the_config_is_a_knob_with_help():
    wanted = paths(ExperimentConfig)
    assert {knob.path for knob in knobs()} == wanted
    assert [knob.path for knob in knobs() if not knob.help] == []


@pytest.mark.parametrize(
    ("path", "bounds", "unit", "kind"),
    [
        ("algorithm.group_size", "2 – 128", "trajectories", "whole"),
        ("sampling.temperature", "> 0, ≤ 2", "", "decimal"),
        ("sampling.top_p", "1", "", "decimal"),
        ("prompt.system_text", "", "", "words"),
        ("desktops.turn_timeout_s", "> 0", "s", "decimal"),
        ("tasks.families", "", "", "list"),
        ("prompt.coordinate_space", "", "", "choice"),
        ("sft.enabled", "", "", "switch"),
    ],
)
def test_a_knob_knows_its_bounds_unit_and_kind(path: str, bounds: str, unit: str, kind: str):
    knob = next(knob for knob in knobs() if knob.path == path)
    assert (knob.bounds, knob.unit, knob.kind) == (bounds, unit, kind)


def test_the_texts_of_a_config_make_the_same_config_again():
    config = parse_config(
        {
            "tasks": {"families": ["menu", "type"], "levels": [1, 3]},
            "optimiser": {"learning_rate": 1e-6},
            "sft": {"enabled": True},
        }
    )
    assert parse_config(nested(flatten(config))) == config


def test_a_text_of_several_lines_stays_as_it_was_written():
    text = "\n  Two lines,\nand {instruction} \n"
    draft = read_form(post(prompt__task_text=text.replace("\n", "\r\n")), DEFAULTS)
    assert draft.errors == {}
    assert draft.config.prompt.task_text == text


def test_a_valid_form_has_a_config_and_its_yaml():
    draft = read_form(post(algorithm__group_size="16", tasks__levels="1, 2"), DEFAULTS)
    assert draft.errors == {}
    assert draft.config.algorithm.group_size == 16
    assert from_yaml(draft.yaml) == draft.config


def test_what_was_typed_stays_beside_every_error():
    draft = read_form(
        post(algorithm__group_size="many", algorithm__clip_low="-1", tasks__levels="1, x"), DEFAULTS
    )
    assert draft.config is None
    assert draft.values["algorithm.group_size"] == "many"
    assert draft.errors == {
        "algorithm.group_size": "must be a whole number",
        "algorithm.clip_low": "must be greater than or equal to 0",
        "tasks.levels": "must be a whole number",
    }
    assert "group_size: many" in draft.yaml


@pytest.mark.parametrize("typed", ["nan", "inf", "-inf", "1e400"])
def test_a_number_without_a_value_is_told_to_be_finite(typed: str):
    draft = read_form(post(optimiser__learning_rate=typed), DEFAULTS)
    assert draft.errors == {"optimiser.learning_rate": "must be a finite number"}


def test_an_impossible_combination_is_named_at_a_field():
    draft = read_form(post(algorithm__kl_coefficient="0.1"), DEFAULTS)
    assert set(draft.errors) == {"algorithm.reference_path"}


def test_unknown_yaml_keys_are_strays_and_the_rest_reaches_the_form():
    draft = read_yaml("algorithm: {group_size: 6, surprise: 1}", DEFAULTS, Team())
    assert draft.values["algorithm.group_size"] == "6"
    assert set(draft.strays()) == {"algorithm.surprise"}


@pytest.mark.parametrize("text", ["a: [", "- 1\n- 2", "algorithm: 3", ""])
def test_yaml_that_is_no_config_is_refused_with_the_text_kept(text: str):
    draft = read_yaml(text, DEFAULTS, Team())
    assert draft.config is None
    assert draft.errors
    assert draft.yaml == text


def test_changes_are_listed_with_both_texts():
    config = parse_config({"algorithm": {"clip_high": 0.4}}).model_dump(mode="json")
    assert [(knob.path, old, new) for knob, old, new in changed_knobs(config, DEFAULTS)] == [
        ("algorithm.clip_high", "0.28", "0.4")
    ]
