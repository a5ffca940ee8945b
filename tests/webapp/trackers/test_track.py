"""`manage.py track` copies an experiment's numbers to other trackers, where they are read back."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from testing.factories import make_experiment
from testing.watch_installation import wait_for
from webapp.experiments.models import Evaluation, Experiment, ExperimentStatus, MetricPoint
from webapp.lib.supervisor.ports import free_port

pytestmark = [pytest.mark.db, pytest.mark.django_db]


@pytest.fixture
def experiment(db: None) -> Experiment:
    made = make_experiment(status=ExperimentStatus.FINISHED)
    for step in range(3):
        MetricPoint.objects.create(experiment=made, name="rollout/success", step=step, value=step / 4)
    # The second attempt went on from step 1 and came further.
    MetricPoint.objects.filter(experiment=made, step=2).update(value=0.9, attempt=2)
    MetricPoint.objects.create(experiment=made, name="rollout/success", step=3, value=1.0, attempt=2)
    Evaluation.objects.create(
        experiment=made, name="after", step=3, policy_version=3, split="heldout", num_tasks=4,
        num_samples=4, num_success=3, success=0.75, low=0.3, high=0.95, temperature=0,
    )  # fmt: skip
    return made


def _answers(client) -> bool:
    from mlflow.exceptions import MlflowException

    try:
        return bool(client.search_experiments())
    except MlflowException:
        return False


def scalars(folder: Path, name: str) -> list[tuple[int, float]]:
    found = EventAccumulator(str(folder)).Reload()
    return [(event.step, pytest.approx(event.value)) for event in found.Scalars(name)]


def test_tensorboard_reads_back_what_the_experiment_measured(experiment, tmp_path, capsys):
    for _ in range(2):  # a second call writes nothing twice
        call_command("track", str(experiment.pk), "--to", f"tensorboard={tmp_path}", "--follow", "0.1")
    folder = tmp_path / f"experiment-{experiment.pk}"
    assert scalars(folder, "rollout/success") == [(0, 0.0), (1, 0.25), (2, 0.9), (3, 1.0)]
    assert scalars(folder, "evaluation/greedy/success") == [(3, 0.75)]
    assert scalars(folder, "evaluation/greedy/low") == [(3, 0.3)]
    found = EventAccumulator(str(folder)).Reload()
    config = found.Tensors("config")[0].tensor_proto.string_val[0].decode()
    assert '"algorithm.group_size"' in config
    assert found.Tensors("status")[0].tensor_proto.string_val == [b"finished"]
    assert "7 points sent to tensorboard=" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("to", "part"),
    [
        ("wandb=here", "expected tensorboard=ADDRESS or mlflow=ADDRESS"),
        ("tensorboard", "expected tensorboard=ADDRESS"),
        ("tensorboard=/proc/here", "/proc/here/experiment-"),
    ],
)
def test_a_tracker_that_cannot_be_used_is_named(experiment, to, part):
    with pytest.raises(CommandError, match=part):
        call_command("track", str(experiment.pk), "--to", to)


def test_a_missing_package_is_named_with_its_remedy(experiment, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow.tracking", None)
    monkeypatch.delitem(sys.modules, "webapp.trackers.sinks.mlflow_server", raising=False)
    with pytest.raises(CommandError, match="pip install mlflow-skinny"):
        call_command("track", str(experiment.pk), "--to", "mlflow=http://127.0.0.1:9")


def test_an_unknown_experiment_is_refused(db):
    with pytest.raises(CommandError, match="there is no experiment 77"):
        call_command("track", "77", "--to", "tensorboard=here")


@pytest.mark.slow
def test_mlflow_reads_back_what_the_experiment_measured(experiment, tmp_path):
    """Needs MLflow's server (`pip install mlflow`), which the set-up of tests leaves out for its size."""
    pytest.importorskip("mlflow.tracking", reason="mlflow-skinny is not installed")
    program = shutil.which("mlflow-server-for-tests") or shutil.which("mlflow")
    if program is None:
        pytest.skip("no MLflow server on PATH")
    from mlflow.tracking import MlflowClient

    port = free_port()
    address = f"http://127.0.0.1:{port}"
    command = [program, "server", "--port", str(port), "--backend-store-uri", f"sqlite:///{tmp_path}/m.db"]
    with subprocess.Popen(command, cwd=tmp_path) as server:
        try:
            client = MlflowClient(tracking_uri=address)
            wait_for("MLflow's server", lambda: _answers(client), patience_s=120)
            for _ in range(2):
                call_command("track", str(experiment.pk), "--to", f"mlflow={address}")
            where = client.get_experiment_by_name("deskhand").experiment_id
            (run,) = client.search_runs([where])
            history = client.get_metric_history(run.info.run_id, "rollout/success")
            assert [(one.step, one.value) for one in history] == [(0, 0.0), (1, 0.25), (2, 0.9), (3, 1.0)]
            assert run.data.params["algorithm.group_size"]
            assert run.info.status == "FINISHED"
        finally:
            server.terminate()
