"""`manage.py track` copies an experiment's numbers to other trackers, where they are read back."""

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.management import CommandError, call_command
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from testing.factories import make_experiment, make_trajectory
from testing.watch_installation import wait_for
from webapp.experiments.models import Evaluation, EvaluationTasks, Experiment, ExperimentStatus, MetricPoint
from webapp.lib.supervisor.ports import free_port
from webapp.trackers.sample_pictures import pictures_of
from webapp.trajectories.pictures import strips

pytestmark = [pytest.mark.db, pytest.mark.django_db]


@pytest.fixture
def experiment(db: None) -> Experiment:
    made = make_experiment(status=ExperimentStatus.FINISHED)
    for step in range(3):
        MetricPoint.objects.create(experiment=made, name="rollout/success", step=step, value=step / 4)
    # The second attempt went on from step 1 and came further.
    MetricPoint.objects.filter(experiment=made, step=2).update(value=0.9, attempt=2)
    MetricPoint.objects.create(experiment=made, name="rollout/success", step=3, value=1.0, attempt=2)
    evaluation = Evaluation.objects.create(
        experiment=made, name="after", step=3, policy_version=3, split="heldout", num_tasks=4,
        num_samples=4, num_success=3, success=0.75, low=0.3, high=0.95, temperature=0,
    )  # fmt: skip
    episode = make_trajectory(experiment=made, turns=2, num_turns=2, score=1.0)
    outcome = {episode.task.task_id: [1, 1, episode.group_id]}
    EvaluationTasks.objects.create(evaluation=evaluation, results=outcome)
    return made


def caption_of(experiment: Experiment) -> str:
    task = experiment.trajectories.get().task.task_id
    return f"{task}: score 1, 2 turns"


def strip_of_the_evaluation(experiment: Experiment) -> bytes:
    [picture] = pictures_of(experiment.evaluations.get(), 4)
    assert Image.open(BytesIO(picture.jpeg)).height == strips.HEIGHT
    return picture.jpeg


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
    [shown] = found.Images("samples/greedy/1")
    assert (shown.step, shown.encoded_image_string) == (3, strip_of_the_evaluation(experiment))
    assert found.SummaryMetadata("samples/greedy/1").summary_description == caption_of(experiment)
    assert found.Tensors("status")[0].tensor_proto.string_val == [b"finished"]
    assert f"sent to tensorboard={tmp_path}; points: 7, pictures: 1" in capsys.readouterr().out


def wandb_records(file: Path) -> Iterator[Any]:
    """The records of a run's file: blocks of 32 KiB with pieces (checksum, length, kind), after a head."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, found = file.read_bytes(), 7, b""
    while at + 7 <= len(data):
        if (room := 32768 - at % 32768) < 7:
            at += room
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        found += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last piece
            yield Record.FromString(found)
            found = b""


def test_wandb_reads_back_what_the_experiment_measured(experiment, tmp_path):
    for _ in range(2):
        call_command("track", str(experiment.pk), "--to", f"wandb={tmp_path}")
    [file] = tmp_path.glob(f"wandb/offline-run-*-experiment-{experiment.pk}/*.wandb")
    records = list(wandb_records(file))
    rows = [
        {item.key or "|".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for record in records
        if record.HasField("history")
    ]
    success = [(row["step"], row["rollout/success"]) for row in rows if "rollout/success" in row]
    assert success == [(0, 0.0), (1, 0.25), (2, 0.9), (3, 1.0)]
    assert [row["evaluation/greedy/success"] for row in rows if "evaluation/greedy/success" in row] == [0.75]
    [shown] = [row for row in rows if "samples/greedy/1|path" in row]
    assert (shown["step"], shown["samples/greedy/1|caption"]) == (3, caption_of(experiment))
    assert Image.open(file.parent / "files" / shown["samples/greedy/1|path"]).height == strips.HEIGHT
    [run] = [record.run for record in records if record.HasField("run")][:1]
    assert run.display_name == f"#{experiment.pk} {experiment.name}"
    assert "algorithm.group_size" in {item.key or item.nested_key[0] for item in run.config.update}
    assert [record.exit.exit_code for record in records if record.HasField("exit")] == [0]


@pytest.mark.parametrize(
    ("to", "part"),
    [
        ("aim=here", "expected tensorboard=ADDRESS or mlflow=ADDRESS or wandb=ADDRESS or trackio=ADDRESS"),
        ("tensorboard", "expected tensorboard=ADDRESS"),
        ("tensorboard=/proc/here", "/proc/here/experiment-"),
        ("wandb=/proc/here", "wandb: /proc/here cannot be written"),
        ("trackio=http://127.0.0.1:9/?write_token=x", "trackio: http://127.0.0.1:9: .*refused"),
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


def test_pictures_can_be_left_out(experiment, tmp_path, capsys):
    call_command("track", str(experiment.pk), "--to", f"tensorboard={tmp_path}", "--pictures", "0")
    assert "points: 7, pictures: 0" in capsys.readouterr().out
    with pytest.raises(CommandError, match="--pictures: must be 0 to 50"):
        call_command("track", str(experiment.pk), "--to", f"tensorboard={tmp_path}", "--pictures", "51")


def test_an_episode_whose_screens_are_gone_has_no_picture(experiment, tmp_path, capsys):
    experiment.trajectories.get().turns.update(frame="0" * 64)
    call_command("track", str(experiment.pk), "--to", f"tensorboard={tmp_path}")
    assert "points: 7, pictures: 0" in capsys.readouterr().out


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
            shown = [one.path for one in client.list_artifacts(run.info.run_id, "images")]
            [picture] = [path for path in shown if path.endswith(".png")]
            assert picture.startswith("images/samples~greedy~1+step+3+")
            file = client.download_artifacts(run.info.run_id, picture, str(tmp_path))
            assert Image.open(file).height == strips.HEIGHT
            assert run.info.status == "FINISHED"
        finally:
            server.terminate()


TRACKIO = "trackio==0.43.0"


@pytest.mark.slow
def test_trackio_reads_back_what_the_experiment_measured(experiment, tmp_path):
    """A real server, in an environment of its own that uv makes: its pillow is older than ours."""
    place, token = tmp_path / "trackio", "written"
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    variables = {"TRACKIO_DIR": str(place), "TRACKIO_WRITE_TOKEN": token, "GRADIO_SERVER_PORT": str(port)}
    words = [sys.executable, "-m", "uv", "tool", "run", "--from", TRACKIO, "trackio"]
    made = subprocess.run([*words, "--help"], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no {TRACKIO} from the package index: {made.stderr[-200:]}")
    starts = "import trackio; trackio.show(open_browser=False, share=False)"
    program = [*words[:-1], "python", "-c", starts]
    with subprocess.Popen(program, cwd=tmp_path, env={**os.environ, **variables}) as server:
        try:
            wait_for("trackio's server", lambda: _is_there(f"{address}/version"), patience_s=120)
            with pytest.raises(CommandError, match="write_token is required"):
                call_command("track", str(experiment.pk), "--to", f"trackio={address}")
            for _ in range(2):
                call_command("track", str(experiment.pk), "--to", f"trackio={address}/?write_token={token}")
            asked = {"project": "deskhand", "run": f"#{experiment.pk} {experiment.name}"}
            rows = httpx.post(f"{address}/api/get_logs", json=asked).json()["data"]
            success = [(row["step"], row["rollout/success"]) for row in rows if "rollout/success" in row]
            assert success == [(0, 0.0), (1, 0.25), (2, 0.9), (3, 1.0)]
            [picture] = [row["samples/greedy/1"] for row in rows if "samples/greedy/1" in row]
            assert (picture["_type"], picture["caption"]) == ("trackio.image", caption_of(experiment))
            stored = place / "media" / picture["file_path"]
            assert stored.read_bytes() == strip_of_the_evaluation(experiment)
            [config] = (
                httpx.post(f"{address}/api/get_run_configs", json={"project": "deskhand"})
                .json()["data"]
                .values()
            )
            assert config["deskhand.status"] == "finished"
            assert config["algorithm.group_size"]
        finally:
            server.terminate()


def _is_there(address: str) -> bool:
    try:
        return httpx.get(address).is_success
    except httpx.TransportError:
        return False
