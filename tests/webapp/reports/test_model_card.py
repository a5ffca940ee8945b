"""The model card: what the checkpoint is, its evaluations and curves, and what it learned from."""

import pytest
import yaml

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_group, make_team, make_trajectory
from training.contracts.config import ExperimentConfig, parse_config
from training.contracts.types import Purpose
from webapp.experiments.models import CheckpointRecord, MetricPoint
from webapp.reports.model_card import MAX_CURVE_ROWS, model_card

pytestmark = pytest.mark.django_db


def card_of(**sections: dict) -> str:
    """Of step 40 of an experiment that went on to 60, cloned from another."""
    team = make_team()
    parent = make_experiment(team=team)
    config = parse_config(sections).model_dump(mode="json")
    experiment = make_experiment(team=team, name="menus | buttons", config=config, cloned_from=parent)
    MetricPoint.objects.bulk_create(
        MetricPoint(experiment=experiment, name="rollout/success", step=step, value=step / 100)
        for step in range(1, 61)
    )
    tasks = {f"menu-{place}": (int(place < 7), 1, 0, int(place < 3)) for place in range(20)}
    make_evaluation(experiment, step=40, name="final", tasks=tasks)
    for purpose, number in ((Purpose.TRAIN, 3), (Purpose.EVALUATION, 2)):
        group = make_group(experiment=experiment, purpose=purpose)
        for _ in range(number):
            make_trajectory(experiment=experiment, group=group, purpose=purpose)
    checkpoint = CheckpointRecord.objects.create(
        experiment=experiment, step=40, policy_version=41, path="/data/x"
    )
    return model_card(checkpoint, "bfloat16")


def test_its_header_is_the_hubs_and_its_config_can_be_launched_again() -> None:
    card = card_of(model={"path": "Qwen/Qwen3-VL-8B-Instruct@main"})
    _, head, body = card.split("---\n", 2)
    assert yaml.safe_load(head) == {
        "library_name": "transformers",
        "pipeline_tag": "image-text-to-text",
        "tags": ["computer-use", "deskhand", ExperimentConfig().algorithm.name],
        "base_model": "Qwen/Qwen3-VL-8B-Instruct",
    }
    config = parse_config(yaml.safe_load(body.split("```yaml\n")[1].split("```")[0]))
    assert config.model.path == "Qwen/Qwen3-VL-8B-Instruct@main"


def test_the_card_of_a_text_model_loads_it_as_one(tmp_path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "qwen3"}')
    card = card_of(model={"path": str(tmp_path)}, prompt={"observation": ["accessibility"]})
    assert yaml.safe_load(card.split("---\n", 2)[1])["pipeline_tag"] == "text-generation"
    assert "AutoModelForCausalLM" in card
    assert "AutoProcessor" not in card
    assert "it reads accessibility and answers" in card
    assert "No screenshots; prompt style" in card


def test_it_tells_evaluations_curves_and_data() -> None:
    card = card_of()
    assert "base_model" not in card
    assert "| 4 of 20: 20.0 % " in card.replace("%", " %"), "solved and ended by the agent"
    assert "| 3 | 7 of 20: 35.0 % " in card.replace("%", " %"), "at a limit, then by OSWorld's rule"
    rows = [line for line in card.split("## Curves")[1].split("## Data")[0].splitlines() if line[:3] != "| -"]
    rows = [line for line in rows if line.startswith("| ")][1:]
    assert len(rows) <= MAX_CURVE_ROWS
    assert rows[-1] == "| 40 | 0.4 |"
    assert "3 trajectories for train." in card
    assert "2 trajectories for evaluation." in card
    assert "was cloned from" in card
