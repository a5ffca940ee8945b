"""Weights by name: a checkpoint of an experiment and a model of the hub are pinned when they are queued."""

from pathlib import Path

import huggingface_hub.constants
import pytest

from testing.factories import make_experiment, make_team
from testing.hub_cache import COMMIT, fill_hub_cache
from testing.paths import REPOSITORY
from training.contracts.config import ConfigError, ExperimentConfig, parse_config
from webapp.accounts.models import Team
from webapp.experiments.models import CheckpointRecord, Experiment
from webapp.experiments.services.experiments import queue_experiment
from webapp.experiments.services.stored_config import pin_models
from webapp.launch.preflight.run_preflight import run_preflight

pytestmark = pytest.mark.django_db

FIRST_DESK = REPOSITORY / "training" / "checkpoints_shipped" / "first-desk"


@pytest.fixture
def team() -> Team:
    return make_team()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def of(path: str) -> ExperimentConfig:
    return parse_config(
        {"model": {"path": path}, "algorithm": {"reference_path": path, "kl_coefficient": 0.1}}
    )


def queue(path: str, team: Team) -> Experiment:
    return queue_experiment(team=team, owner=None, name="from elsewhere", config=of(path))


def saved(team: Team, step: int, **values: object) -> CheckpointRecord:
    experiment = Experiment.objects.filter(team=team).first() or make_experiment(team=team)
    path = f"/elsewhere/{experiment.pk}/checkpoints/0000{step}-grpo"
    return CheckpointRecord.objects.create(
        experiment=experiment, step=step, policy_version=step, path=path, **values
    )


@pytest.mark.parametrize(("wanted", "step"), [("best", 1), ("latest", 3), ("step 2", 2)])
def test_a_checkpoints_name_becomes_its_folder(team: Team, wanted: str, step: int) -> None:
    folders = {number: saved(team, number, is_best=number == 1).path for number in (1, 2, 3)}
    origin = Experiment.objects.get()
    settings = queue(f"experiment:{origin.pk}@{wanted}", team).settings
    assert settings.model.path == settings.algorithm.reference_path == f"{folders[step]}/model"


def test_checkpoints_that_are_not_there_are_refused_at_launch_and_before(team: Team) -> None:
    origin = saved(make_team(), 1).experiment_id
    with pytest.raises(ConfigError) as refused:
        queue(f"experiment:{origin}@best", team)
    assert set(refused.value.problems) == {"model.path", "algorithm.reference_path"}
    assert f"has no experiment {origin}" in str(refused.value)
    checks = run_preflight(of(f"experiment:{origin}@best"), team=team).checks
    assert any(check.level == "bad" and "has no experiment" in check.detail for check in checks)
    own = saved(team, 1).experiment_id
    with pytest.raises(ConfigError, match="kept are those of steps 1"):
        queue(f"experiment:{own}@step 7", team)


def test_a_branch_of_the_hub_is_recorded_by_its_commit(team: Team, cache: Path) -> None:
    fill_hub_cache(cache, FIRST_DESK, repository="someone/first-desk")
    experiment = queue("someone/first-desk@main", team)
    assert experiment.settings.model.path == f"someone/first-desk@{COMMIT}"
    fill_hub_cache(cache, FIRST_DESK, repository="someone/first-desk", commit="f" * 40)
    assert pin_models(experiment, experiment.settings) == experiment.settings
    good = run_preflight(of("someone/first-desk@main"), team=team).checks
    assert not [check for check in good if check.path == "model.path" and check.level == "bad"]


def test_what_only_the_gpu_worker_has_is_recorded_when_it_begins(team: Team, cache: Path) -> None:
    experiment = queue("someone/first-desk@main", team)
    assert experiment.settings.model.path == "someone/first-desk@main"
    (missing,) = (
        check for check in run_preflight(experiment.settings, team=team).checks if check.path == "model.path"
    )
    assert "hf download someone/first-desk --revision main" in missing.detail
    fill_hub_cache(cache, FIRST_DESK, repository="someone/first-desk")
    pin_models(experiment, experiment.settings)
    experiment = Experiment.objects.get(pk=experiment.pk)
    assert experiment.settings.model.path == experiment.model_path == f"someone/first-desk@{COMMIT}"
