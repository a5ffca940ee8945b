"""Checkpoints on demand: evaluate, export, download, go on from one; what is refused and why."""

import io
import json
import tarfile
from datetime import timedelta
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_team, make_user
from testing.page_text import page_text
from training.contracts.config import parse_config
from webapp.accounts.models import Role, Team
from webapp.analysis.series.metric_series import evaluation_points
from webapp.checkpoints.services import exports
from webapp.checkpoints.services.evaluations import HowToEvaluate, request_evaluation
from webapp.experiments.models import CheckpointExport, CheckpointRecord, Experiment, ExportStatus
from webapp.experiments.queries.checkpoints import CheckpointRefused, config_to_continue, paths_in_use
from webapp.experiments.queries.evaluations import all_evaluations
from webapp.experiments.services import checkpoints
from webapp.experiments.services.experiments import queue_experiment, request_cancel
from webapp.fleet.services.workers import beat_worker
from webapp.live.models import Event
from webapp.worker_door import checkpoint_copies_and_exports

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return make_team()


@pytest.fixture
def operator(client: Client, team: Team):
    user = make_user(Role.OPERATOR, team=team)
    client.force_login(user)
    return user


@pytest.fixture
def checkpoint(team: Team) -> CheckpointRecord:
    config = parse_config(
        {
            "sft": {"enabled": True},
            "lora": {"rank": 8},
            "tasks": {"families": ["menu"]},
            "optimiser": {"num_processes": 2},
        }
    )
    experiment = make_experiment(team=team, config=config.model_dump(mode="json"), priority=4)
    return CheckpointRecord.objects.create(
        experiment=experiment, step=10, policy_version=11, path="/data/x/checkpoints/00003-grpo-000010"
    )


def evaluation_of(checkpoint: CheckpointRecord, *, num_tasks: int = 40, temperature: float | None = 0.0):
    how = HowToEvaluate(num_tasks=num_tasks, temperature=temperature)
    return request_evaluation(checkpoint=checkpoint, user=None, how=how)


def test_an_evaluation_is_an_experiment_on_the_checkpoints_weights_that_trains_nothing(
    checkpoint: CheckpointRecord,
) -> None:
    queued = evaluation_of(checkpoint)
    config = parse_config(queued.config)
    assert config.model.path == f"{checkpoint.path}/model"
    assert (config.evaluation.only, config.evaluation.num_tasks, config.evaluation.temperature) == (
        True,
        40,
        0.0,
    )
    assert (config.sft.enabled, config.lora.rank, config.tasks.families) == (False, 0, ("menu",))
    assert [stage.name for stage in queued.stages.all()] == ["evaluation-before"]
    assert (queued.evaluates, queued.priority) == (checkpoint, 4)


def test_the_same_evaluation_twice_is_one_and_another_is_another(checkpoint: CheckpointRecord) -> None:
    first = evaluation_of(checkpoint)
    assert evaluation_of(checkpoint) == first
    assert evaluation_of(checkpoint, temperature=1.0) != first
    assert evaluation_of(checkpoint, temperature=None) != first
    request_cancel(experiment=first)
    assert evaluation_of(checkpoint) != first


def test_each_is_named_by_its_number_and_who_asked(checkpoint: CheckpointRecord) -> None:
    ana = make_user(Role.OPERATOR, team=checkpoint.experiment.team, name="ana")
    names = []
    for temperature in (0.0, 0.5):
        how = HowToEvaluate(num_tasks=9, temperature=temperature)
        asked = request_evaluation(checkpoint=checkpoint, user=ana, how=how)
        names.append(asked.name)
    first = f"Evaluate #{checkpoint.experiment_id} step 10"
    assert names == [f"{first} by ana", f"{first}, no. 2 by ana"]
    long = make_user(Role.OPERATOR, team=checkpoint.experiment.team, name="u" * 150)
    how = HowToEvaluate(num_tasks=9, temperature=1.0)
    asked = request_evaluation(checkpoint=checkpoint, user=long, how=how)
    asked.refresh_from_db()
    assert (len(asked.name), asked.name[:30], asked.name[-2:]) == (120, f"{first}, no. 3 by "[:30], "u…")


def test_its_result_stands_beside_the_checkpoint_and_in_the_chart(
    client: Client, operator, checkpoint: CheckpointRecord
) -> None:
    source = checkpoint.experiment
    queued = evaluation_of(checkpoint)
    page = page_text(client.get(f"/experiments/{source.pk}/?tab=checkpoints"))
    assert f"#{queued.pk}" in page
    make_evaluation(queued, won=30, total=40, temperature=0.0)
    Experiment.objects.filter(pk=queued.pk).update(status="finished")

    page = page_text(client.get(f"/experiments/{source.pk}/?tab=checkpoints"))
    assert "30 of 40 held-out tasks" in page
    assert "greedy" in page
    (point,) = evaluation_points(all_evaluations(source))
    assert (point["name"], point["step"], point["num_tasks"]) == ("on demand", 10, 40)
    assert "On demand" in page_text(client.get(f"/experiments/{source.pk}/?tab=evaluations"))
    events = Event.objects.filter(stream=f"experiment.{source.pk}").values_list("type", flat=True)
    assert {"checkpoint.evaluated", "evaluation.added"} <= set(events)
    own = page_text(client.get(f"/experiments/{queued.pk}/"))
    assert f"Evaluates step 10 of #{source.pk}" in own


def test_results_of_the_experiment_itself_stand_beside_the_checkpoint_of_that_policy(
    client: Client, operator, checkpoint: CheckpointRecord
) -> None:
    of_step = {"name": "during", "step": 10, "policy_version": 11}
    make_evaluation(checkpoint.experiment, **of_step, won=36, total=72, low=0.39, high=0.61)
    page = page_text(client.get(f"/experiments/{checkpoint.experiment_id}/?tab=checkpoints"))
    assert "36 of 72 held-out tasks; 95 % Wilson interval 39 % to 61 %" in page


def test_a_deleted_checkpoint_is_refused_and_says_when_it_was_deleted(
    client: Client, operator, checkpoint: CheckpointRecord
) -> None:
    checkpoints.record_checkpoint_deleted(experiment_id=checkpoint.experiment_id, path=checkpoint.path)
    url = f"/experiments/{checkpoint.experiment_id}/checkpoints/{checkpoint.pk}"
    body = {"num_tasks": "10", "sampling": "greedy"}
    page = page_text(client.post(f"{url}/evaluate/", body, follow=True))
    assert "Not evaluated: the checkpoint of step 10 was deleted" in page
    assert "Not exported" in page_text(client.post(f"{url}/export/", {"dtype": "float32"}, follow=True))
    assert not Experiment.objects.exclude(pk=checkpoint.experiment_id).exists()


def test_a_folder_that_somebody_removed_by_hand_is_refused(
    checkpoint: CheckpointRecord, tmp_path: Path
) -> None:
    CheckpointRecord.objects.filter(pk=checkpoint.pk).update(path=str(tmp_path / "gone"))
    checkpoint.refresh_from_db()
    with pytest.raises(CheckpointRefused, match="is gone from the disk"):
        evaluation_of(checkpoint)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"num_tasks": "many", "sampling": "greedy"}, "num_tasks: 'many' is not a whole number"),
        ({"num_tasks": "0", "sampling": "greedy"}, "num_tasks: must be from 1"),
        (
            {"num_tasks": "9", "sampling": "sampled", "temperature": "3"},
            "temperature: must be from 0 (greedy)",
        ),
    ],
)
def test_a_wrong_wish_names_its_field(
    client: Client, operator, checkpoint: CheckpointRecord, body: dict[str, str], words: str
) -> None:
    url = f"/experiments/{checkpoint.experiment_id}/checkpoints/{checkpoint.pk}/evaluate/"
    page = page_text(client.post(url, body, follow=True)).replace("&#x27;", "'")
    assert words in page


def test_without_a_gpu_worker_the_page_says_that_it_will_wait(
    client: Client, operator, checkpoint: CheckpointRecord
) -> None:
    exports.request_export(checkpoint=checkpoint, user=None)
    url = f"/experiments/{checkpoint.experiment_id}/?tab=checkpoints"
    assert page_text(client.get(url)).count("o gpu worker is online") == 3
    beat_worker(name="gpu@here", queue="gpu", host="here", pid=1, slots=1, version="1")
    assert "o gpu worker is online" not in page_text(client.get(url))


def test_what_somebody_waits_for_is_not_pruned(checkpoint: CheckpointRecord) -> None:
    source = checkpoint.experiment
    assert paths_in_use(source.pk) == []
    queued = evaluation_of(checkpoint)
    assert paths_in_use(source.pk) == [checkpoint.path]
    request_cancel(experiment=queued)
    assert paths_in_use(source.pk) == []
    exports.request_export(checkpoint=checkpoint, user=None)
    assert paths_in_use(source.pk) == [checkpoint.path]


def test_the_start_of_another_experiment_holds_its_checkpoint(checkpoint: CheckpointRecord) -> None:
    config = config_to_continue(checkpoint)
    team = checkpoint.experiment.team
    on = queue_experiment(team=team, owner=None, name="on", config=config)
    for status in ("queued", "starting", "running", "paused"):
        Experiment.objects.filter(pk=on.pk).update(status=status)
        assert paths_in_use(checkpoint.experiment_id) == [checkpoint.path], status
    Experiment.objects.filter(pk=on.pk).update(status="finished")
    assert paths_in_use(checkpoint.experiment_id) == []


def test_continue_opens_the_form_on_the_checkpoints_weights(
    client: Client, operator, checkpoint: CheckpointRecord
) -> None:
    url = f"/experiments/launch/?clone={checkpoint.experiment_id}&checkpoint={checkpoint.pk}"
    page = page_text(client.get(url))
    assert f'value="{checkpoint.path}/model"' in page
    assert "Continues from the checkpoint of step 10" in page
    assert "(from step 10)" in page


# --- exports -----------------------------------------------------------------------------------------


def finished_export(checkpoint: CheckpointRecord, folder: Path) -> CheckpointExport:
    folder.mkdir()
    (folder / "config.json").write_text('{"a": 1}')
    (folder / "model.safetensors").write_bytes(b"x" * 5_000_000)
    export = exports.request_export(checkpoint=checkpoint, user=None)
    assert [found.pk for found in checkpoint_copies_and_exports.waiting_exports("gpu@here")] == [export.pk]
    assert exports.claim_export(export=export, worker_name="gpu@here", host="here", folder=folder.parent)
    CheckpointExport.objects.filter(pk=export.pk).update(path=str(folder))
    exports.finish_export(export.pk, size_bytes=5_000_008)
    export.refresh_from_db()
    return export


def test_a_finished_export_is_downloaded_as_one_tar_of_the_announced_length(
    client: Client, operator, checkpoint: CheckpointRecord, tmp_path: Path
) -> None:
    folder = tmp_path / "experiment-1-step-10"
    export = finished_export(checkpoint, folder)
    answer = client.get(f"/experiments/{checkpoint.experiment_id}/exports/{export.pk}.tar")
    body = async_to_sync(_joined)(answer.streaming_content)
    assert int(answer["Content-Length"]) == len(body)
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        assert archive.getnames() == [f"{folder.name}/config.json", f"{folder.name}/model.safetensors"]
        member = archive.extractfile(f"{folder.name}/model.safetensors")
        assert member is not None
        assert member.read() == b"x" * 5_000_000


async def _joined(parts) -> bytes:
    return b"".join([part async for part in parts])


def test_an_export_on_another_host_says_where_it_lies(
    client: Client, operator, checkpoint: CheckpointRecord, tmp_path: Path
) -> None:
    export = finished_export(checkpoint, tmp_path / "x")
    CheckpointExport.objects.filter(pk=export.pk).update(path="/elsewhere/x")
    answer = client.get(f"/experiments/{checkpoint.experiment_id}/exports/{export.pk}.tar")
    assert answer.status_code == 409
    assert "lies on here in /elsewhere/x" in page_text(answer)


def test_the_same_export_is_not_made_twice_until_it_is_removed(
    checkpoint: CheckpointRecord, tmp_path: Path
) -> None:
    export = finished_export(checkpoint, tmp_path / "x")
    assert exports.request_export(checkpoint=checkpoint, user=None) == export
    assert exports.remove_export(export=export)
    assert checkpoint_copies_and_exports.removable_exports("there") == []
    assert [found.pk for found in checkpoint_copies_and_exports.removable_exports("here")] == [export.pk]
    exports.confirm_removal(export.pk)
    assert exports.request_export(checkpoint=checkpoint, user=None) != export


def test_an_export_of_a_silent_worker_waits_again(checkpoint: CheckpointRecord, tmp_path: Path) -> None:
    export = exports.request_export(checkpoint=checkpoint, user=None)
    exports.claim_export(export=export, worker_name="gpu@here", host="here", folder=tmp_path)
    assert exports.lose_stale_exports() == 0
    long_ago = timezone.now() - timedelta(minutes=2)
    CheckpointExport.objects.filter(pk=export.pk).update(heartbeat_at=long_ago)
    assert exports.lose_stale_exports() == 1
    export.refresh_from_db()
    assert export.status == ExportStatus.QUEUED


def test_an_unknown_number_format_is_refused(checkpoint: CheckpointRecord) -> None:
    with pytest.raises(CheckpointRefused, match="bfloat16, float16, float32"):
        exports.request_export(checkpoint=checkpoint, user=None, dtype="int4")


# --- command line ------------------------------------------------------------------------------------


def test_the_command_line_evaluates_and_exports(checkpoint: CheckpointRecord, capsys) -> None:
    pk = checkpoint.experiment_id
    call_command("experiment", pk, "evaluate", checkpoint="latest", tasks=12, temperature=0.0)
    queued = Experiment.objects.get(pk=json.loads(capsys.readouterr().out)["experiment"])
    assert queued.config["evaluation"]["num_tasks"] == 12
    call_command("experiment", pk, "export", checkpoint="step 10", dtype="float32")
    assert json.loads(capsys.readouterr().out)["step"] == 10
    with pytest.raises(CommandError, match="has no checkpoint 'best'; kept are those of steps 10"):
        call_command("experiment", pk, "evaluate")
    with pytest.raises(CommandError, match="--tasks: must be from 1"):
        call_command("experiment", pk, "evaluate", checkpoint="latest", tasks=0)
