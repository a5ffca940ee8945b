"""What a turn shows: `prompt.observation`, and what it was called before."""

import pytest

from training.contracts.config import ConfigError, from_yaml, parse_config, to_yaml
from training.contracts.observed_text import MeasuredTurn, ObservedText
from training.contracts.types import Observation, Turn
from training.planning.presets import load_presets


@pytest.mark.parametrize(
    ("prompt", "observation"),
    [
        ({}, ("screenshot",)),
        ({"text_only": False}, ("screenshot",)),
        ({"text_only": True}, ()),
        ({"text_only": "true"}, ()),
        ({"text_only": True, "observation": ["screenshot"]}, ()),
        ({"text_only": True, "observation": ["terminal"]}, ("terminal",)),
        ({"observation": ["terminal", "screenshot", "terminal"]}, ("screenshot", "terminal")),
        ({"observation": ["terminal", "screenshot", "marks"]}, ("marks", "terminal")),
    ],
)
def test_configs_of_before_load_as_what_they_meant(prompt: dict, observation: tuple) -> None:
    config = parse_config({"prompt": prompt, "sft": {"enabled": False}})
    assert config.prompt.observation == observation
    assert "text_only" not in to_yaml(config)
    assert from_yaml(to_yaml(config)) == config


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        (
            {"prompt": {"observation": []}, "sft": {"enabled": True}},
            "prompt.observation",
            "SFT stage needs",
        ),
        (
            {"prompt": {"observation": ["marks"], "observation_every": 0}},
            "prompt.observation_every",
            "draws the marks at no turn",
        ),
        ({"prompt": {"observation": ["sound"]}}, "prompt.observation.0", "'screenshot', 'marks'"),
        (
            {"prompt": {"observation": ["accessibility"], "observation_every": 0}},
            "prompt.observation_every",
            "at no turn",
        ),
    ],
)
def test_what_cannot_be_shown_is_refused_by_its_field(changes: dict, field: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        parse_config(changes)
    assert list(refused.value.problems) == [field]


def test_text_alone_may_have_an_sft_stage() -> None:
    parse_config({"prompt": {"observation": ["accessibility"]}, "sft": {"enabled": True}})


def test_areals_text_run_reads_the_tree() -> None:
    (preset,) = [one for one in load_presets() if one.name == "areal-osworld-smoke-text"]
    assert preset.config.prompt.observation == ("accessibility",)


def test_turns_without_texts_are_stored_as_before() -> None:
    observation = Observation(sha256="", width=1, height=1)
    stored = Turn(index=0, observation=observation).model_dump(mode="json")
    assert set(stored["observation"]) == {"sha256", "width", "height", "text"}
    assert "measured" not in stored
    read = observation.model_copy(update={"accessibility": ObservedText(error="no answer within 2 s")})
    turn = Turn(index=0, observation=read, measured=MeasuredTurn(terminal_changed=False))
    assert Turn.model_validate_json(turn.model_dump_json()) == turn
