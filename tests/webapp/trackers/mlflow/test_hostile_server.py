"""An MLflow server that answers what none would: the command says so, and neither breaks nor waits."""

import pytest
from django.core.management import CommandError, call_command

from testing.servers.canned_server import canned_server

pytest.importorskip("mlflow.tracking", reason="mlflow-skinny is not installed")
pytestmark = pytest.mark.django_db
API = "/api/2.0/mlflow"
FOUND = {"experiment": {"experiment_id": "1", "name": "deskhand", "lifecycle_stage": "active"}}
RUN = {"info": {"run_id": "r", "experiment_id": "1", "status": "RUNNING", "artifact_uri": "file:///etc"}}
DATA = {"metrics": [{"key": "rollout/success", "value": 1, "timestamp": 1, "step": 1}]}
BODIES = [
    b"",
    b"[]",
    b"null",
    b"7",
    b"{",
    b"<html>",
    b"\xff",
    {"experiment": 1},
    {"experiment": {}},
    {"runs": 1},
]


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")


def track(experiment, server) -> str:
    with pytest.raises(CommandError) as refused:
        call_command("track", str(experiment.pk), "--to", f"mlflow={server.url}")
    return str(refused.value)


@pytest.mark.parametrize("body", BODIES)
def test_an_answer_of_another_kind_is_named_as_the_trackers(experiment, body):
    with canned_server() as server:
        server.otherwise = body
        assert track(experiment, server).startswith(f"mlflow: {server.url}: ")


@pytest.mark.parametrize("history", [{}, {"metrics": []}, {"metrics": [{}]}, {"metrics": [{"step": "x"}]}])
def test_a_run_whose_series_has_no_points_is_not_believed(experiment, history):
    with canned_server() as server:
        server.answers = {
            f"{API}/experiments/get-by-name": FOUND,
            f"{API}/runs/search": {"runs": [{"info": RUN["info"], "data": DATA}]},
            f"{API}/metrics/get-history": history,
        }
        server.otherwise = b"[]"
        assert track(experiment, server).startswith(f"mlflow: {server.url}: ")


def test_words_of_the_server_do_not_move_the_terminals_cursor(experiment):
    with canned_server() as server:
        server.status, server.otherwise = (
            400,
            {"error_code": "X", "message": "\x1b[2J\x1b]0;owned\x07" + "x" * 9000},
        )
        said = track(experiment, server)
    assert "\x1b" not in said
    assert "\x07" not in said
    assert len(said) < 1000


def test_no_picture_is_written_to_a_folder_that_the_server_names(experiment, tmp_path):
    """It says where the run's files lie; `file:` would be a folder of this machine."""
    with canned_server() as server:
        info = RUN["info"] | {"artifact_uri": tmp_path.as_uri()}
        server.answers = {
            f"{API}/experiments/get-by-name": FOUND,
            f"{API}/runs/search": {"runs": [{"info": info, "data": {}}]},
            f"{API}/runs/get": {"run": {"info": info, "data": {}}},
            f"{API}/runs/log-batch": {},
        }
        server.otherwise = {}
        assert "would lie at file:" in track(experiment, server)
    assert list(tmp_path.rglob("*")) == []
