"""The experiment config keeps its keys, types, bounds and defaults: stored configs depend on them.

`python -m tests.training.contracts.test_config_schema` writes the fixture anew, for a change that is meant.
"""

import json
from pathlib import Path
from typing import Any

import yaml

from training.contracts.config import ExperimentConfig, from_yaml, to_yaml
from training.planning.presets import load_presets

FIXTURE = Path(__file__).with_name("experiment_config_schema.json")


def without_prose(schema: Any) -> Any:
    """The schema without help texts and titles, which may change."""
    if isinstance(schema, list):
        return [without_prose(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: without_prose(part) for name, part in value.items()}
        if key in ("properties", "$defs")
        else without_prose(value)
        for key, value in schema.items()
        if key not in ("description", "title") or not isinstance(value, str)
    }


def test_keys_types_bounds_and_defaults_are_those_of_the_fixture() -> None:
    assert without_prose(ExperimentConfig.model_json_schema()) == json.loads(FIXTURE.read_text())


def test_yaml_keeps_every_value_and_the_order_of_the_fields() -> None:
    for config in (ExperimentConfig(), *(preset.config for preset in load_presets())):
        text = to_yaml(config)
        assert from_yaml(text) == config
        assert to_yaml(from_yaml(text)) == text
        assert list(yaml.safe_load(text)) == list(ExperimentConfig.model_fields)


if __name__ == "__main__":
    schema = without_prose(ExperimentConfig.model_json_schema())
    FIXTURE.write_text(json.dumps(schema, indent=1) + "\n")
