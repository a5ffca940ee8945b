"""What the browser tests do by clicks, once by the client; launching and steering are in test_client.py."""

from __future__ import annotations

import io
from functools import partial

import pytest
from deskhand_client import ApiError, Client

from testing.evaluation_rows import make_evaluation
from testing.factories import make_replay_entry, make_team, make_trajectory, make_user
from webapp.accounts.models import AuditEntry, Scope
from webapp.accounts.services.tokens import create_token
from webapp.dispatcher.work_kinds import kinds
from webapp.experiments.models import AlarmRecord, Experiment
from webapp.replay.models import ReplayEntry

pytestmark = pytest.mark.django_db(transaction=True)

TERMS = {"terms": [{"term": "task_score.v1", "weight": 1}]}
TASK = {
    "id": "notes-1",
    "instruction": "Open the notes",
    "evaluator": {"func": "exact_match", "result": {"type": "vm_command_line", "command": "true"},
                  "expected": {"type": "rule", "rules": {"expected": ""}}},
}  # fmt: skip


@pytest.fixture
def team():
    return make_team("red")


@pytest.fixture
def client(team, live_server):
    owner = make_user("admin", team=team, name="olga")
    token = create_token(user=owner, name="stories", scope=Scope.ADMIN)
    with Client(live_server.url, token) as found:
        yield found


def test_an_alarm_is_followed_to_its_cause_and_checkpoints_are_used(client, team):
    run = client.launch_experiment(name="mine", preset="first-desk")
    experiment = Experiment.objects.get(pk=run["id"])
    AlarmRecord.objects.create(
        experiment=experiment, name="truncation", severity="warning", step=3, value=0.4, limit=0.3
    )
    assert [found["status"] for found in client.list_alarms(run["id"])] == ["active"]
    assert client.acknowledge_alarm(run["id"], "truncation")["acknowledged_by"] == "olga"
    checkpoint = experiment.checkpoints.create(step=2, policy_version=2, path="/nowhere/here")
    make_evaluation(experiment, name="step-2", step=2)
    assert [one["checkpoint"]["id"] for one in client.list_checkpoints(run["id"])] == [checkpoint.pk]
    assert client.evaluate_checkpoint(run["id"], str(checkpoint.pk), num_tasks=2)["status"] == "queued"
    assert client.export_checkpoint(run["id"], "latest")["status"] == "queued"
    first = client.cancel_many(ids=[run["id"]])
    assert first["done"] == client.undo_cancel(undo=first["undo"])["done"] == [run["id"]]
    assert client.tag_many(ids=[run["id"]], tag="kept")["done"] == [run["id"]]
    assert client.archive_many(ids=[run["id"]], archived=True)["left"].keys() == {str(run["id"])}


def test_entries_are_curated_exported_and_imported_by_another_team(client, team, live_server):
    entry = make_replay_entry(team=team, turns=3)
    trajectory = entry.trajectory
    assert client.rate_turn(trajectory.pk, turn=0, rating="bad")
    assert client.edit_entry(entry.pk, last=1)["edit"]
    assert client.undo_latest_label()
    assert client.label_entry(entry.pk, verdict="accepted")["verdict"] == "accepted"
    assert client.try_policy(only_gold=True)["num_entering"] == 0
    policy = client.save_policy(name="all", only_gold=False)
    assert client.take_buffer_snapshot(policy=policy["id"], name="today")
    lines = b"".join(client.export_entries())
    blue = make_user("admin", team=make_team("blue"), name="bob")
    with Client(live_server.url, create_token(user=blue, name="x", scope=Scope.ADMIN)) as other:
        upload = io.BytesIO(lines)
        upload.name = "lines.jsonl"
        found = other.check_import(file=upload, task_set=trajectory.task.task_set.name)
        kinds["import"].run(found["id"], lambda: False)
        assert other.show_import(found["id"])["num_new"] == 1
        other.start_import(found["id"])
        kinds["import"].run(found["id"], lambda: False)
        assert other.show_import(found["id"])["num_stored"] == 1
        assert [row["verdict"] for row in other.every(other.list_entries)] == ["inbox"]
    assert ReplayEntry.objects.count() == 2


def test_tasks_rewards_and_scanners_are_written_tried_and_saved(client, team):
    task = client.save_task("own", task=TASK)
    again = client.save_task("own", task={**TASK, "instruction": "Open the notes again"}, base=task["id"])
    assert [row["id"] for row in client.every(client.list_tasks, "own")] == [again["id"]]
    with pytest.raises(ApiError) as refused:
        client.save_task("own", task={"id": "x"})
    assert refused.value.fields
    make_trajectory(team=team, turns=2)
    assert client.try_rewards(definition=TERMS, slice="buffer-all")["num_trajectories"] >= 0
    assert client.save_rewards(name="careful", definition=TERMS)["version"] == 1
    scanner = client.save_scanner(name="still", definition={"kind": "still"})
    assert client.preview_scan(scanner["name"])["num_calls"] == 0


def test_reports_are_frozen_and_shared_and_trajectories_saved_as_folders(client, team):
    run = client.launch_experiment(name="mine", preset="first-desk")
    trajectory = make_trajectory(team=team, turns=2)
    report = client.write_report(title="Found", experiments=[run["id"]], trajectories=[trajectory.pk])
    link = client.make_report_link(report["report"], 1, days=7)
    assert link["url"]
    client.revoke_report_link(report["report"], link["id"])
    folders = (
        partial(client.export_trajectory_folder, trajectory.pk),
        partial(client.export_group_folder, trajectory.group_id),
    )
    assert [b"".join(save())[:2] for save in folders] == [b"PK"] * 2


def test_a_team_is_run(client, team):
    made = client.add_member(username="vera", role="viewer")["member"]
    assert client.change_role(made["id"], role="operator")["role"] == "operator"
    view = client.save_view(page="replay", name="good ones", query="verdict=gold", for_team=True)
    client.delete_view(view["id"])
    rule = client.add_notification_rule(channel="browser", kinds=["failed"])
    assert client.switch_notification_rule(rule["id"], is_on=False)["is_on"] is False
    assert client.save_rule(max_age_days=30)["max_age_days"] == 30
    samples = client.seed_samples()
    assert client.show_experiment(samples["finished"])["status"] == "finished"
    client.delete_samples()
    assert AuditEntry.objects.filter(person__username="olga").count() >= 5
    client.remove_member(made["id"])
