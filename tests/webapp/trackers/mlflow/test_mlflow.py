"""A run on a real server of MLflow."""

import shutil
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command
from PIL import Image

from testing.watch_installation import wait_for
from webapp.lib.supervisor.ports import free_port
from webapp.trajectories.pictures import strips

pytestmark = [pytest.mark.db, pytest.mark.django_db]


def _answers(client) -> bool:
    from mlflow.exceptions import MlflowException

    try:
        return bool(client.search_experiments())
    except MlflowException:
        return False


def test_a_missing_package_is_named_with_its_remedy(experiment, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow.tracking", None)
    monkeypatch.delitem(sys.modules, "webapp.trackers.mlflow.tracker", raising=False)
    with pytest.raises(CommandError, match="pip install mlflow-skinny"):
        call_command("track", str(experiment.pk), "--to", "mlflow=http://127.0.0.1:9")


@pytest.mark.slow
def test_it_reads_back_what_the_experiment_measured(experiment, tmp_path):
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
            shown = [one.path for one in client.list_artifacts(run.info.run_id, "images")]
            [picture] = [path for path in shown if path.endswith(".png")]
            assert picture.startswith("images/samples~greedy~1+step+3+")
            file = client.download_artifacts(run.info.run_id, picture, str(tmp_path))
            assert Image.open(file).height == strips.HEIGHT
            assert run.info.status == "FINISHED"
        finally:
            server.terminate()
