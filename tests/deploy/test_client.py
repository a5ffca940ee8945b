"""The client and the command `deskhand` against a running server: what the pages do, without a browser."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from deskhand_client import ApiError, Client, Unreachable
from deskhand_client.cli.main import main

from testing.factories import (
    make_experiment,
    make_group,
    make_replay_entry,
    make_task,
    make_team,
    make_trajectory,
    make_user,
)
from testing.fleet_rows import make_desktop, make_host
from testing.paths import REPOSITORY
from training.contracts.config import ExperimentConfig, to_yaml
from webapp.accounts.models import Membership, Scope
from webapp.accounts.services.tokens import create_token
from webapp.experiments.log_files import log_folder
from webapp.experiments.models import ExperimentStatus
from webapp.experiments.services.statuses import change_status
from webapp.replay.models import ReplayEntry, ReplayImport
from webapp.replay.services.imports import MAX_OPEN

pytestmark = pytest.mark.django_db(transaction=True)


class Terminal:
    """A person who types `deskhand ...`; their login lies in a file of its own."""

    def __init__(self, folder: Path, url: str, token: str) -> None:
        self.file = folder / "login.json"
        self.url, self.token = url, token

    def run(self, *words: str, code: int = 0, **variables: str) -> Result:
        env = {"DESKHAND_CLIENT_FILE": str(self.file), "COLUMNS": "200", **variables}
        done = CliRunner(env=env).invoke(main, list(words), catch_exceptions=False)
        assert done.exit_code == code, done.output + done.stderr
        return done

    def json(self, *words: str, code: int = 0):
        return json.loads(self.run(*words, "--json", code=code).stdout)


@pytest.fixture
def team():
    return make_team("red")


@pytest.fixture
def user(team):
    return make_user("admin", team=team, name="olga")


@pytest.fixture
def terminal(tmp_path, live_server, user):
    token = create_token(user=user, name="laptop", scope=Scope.ADMIN)
    found = Terminal(tmp_path, live_server.url, token)
    found.run("login", live_server.url, "--token", token)
    return found


def test_a_login_is_kept_for_its_owner_alone_and_forgotten(terminal):
    assert stat.S_IMODE(terminal.file.stat().st_mode) == 0o600
    assert terminal.json("whoami") == {"username": "olga", "teams": {"red": "admin"}}
    terminal.run("logout")
    refused = terminal.run("whoami", code=3)
    assert "deskhand login" in refused.stderr


def test_refusals_have_one_line_and_a_code(terminal):
    refused = terminal.run("show", "999", code=1)
    assert refused.stderr.startswith("deskhand: No such experiment")
    answer = terminal.json("launch", "--preset", "first-desk", "--set", "algorithm.num_steps=-1", code=1)
    assert "algorithm.num_steps" in answer["error"]["fields"]
    assert terminal.run("whoami", code=3, DESKHAND_TOKEN="dh_wrong").stderr
    assert terminal.run("whoami", code=4, DESKHAND_URL="http://127.0.0.1:9").stderr
    assert terminal.run("launch", code=2).stderr


def test_an_experiment_is_launched_steered_and_watched(terminal, tmp_path, settings):
    settings.EXPERIMENTS_DIR = tmp_path / "experiments"
    file = tmp_path / "mine.yaml"
    file.write_text(to_yaml(ExperimentConfig()))
    first = terminal.json("launch", str(file), "--note", "of a file")
    second = terminal.json(
        "launch", "--preset", "first-desk", "--set", "algorithm.num_steps=3", "--name", "b"
    )
    assert (first["name"], second["config"]["algorithm"]["num_steps"]) == ("mine", 3)
    one, two = str(first["id"]), str(second["id"])
    assert [row["id"] for row in terminal.json("move", two, "--before", one)] == [second["id"], first["id"]]
    terminal.run("priority", one, "5")
    assert [row["id"] for row in terminal.json("queue")] == [first["id"], second["id"]]
    assert [row["status"] for row in terminal.json("pause", one, two)] == ["paused", "paused"]
    terminal.run("resume", one)
    assert terminal.json("cancel", two)[0]["status"] == "cancelled"
    assert "mine" in terminal.run("list", "--status", "queued").stdout
    folder = log_folder(first["id"])
    folder.mkdir(parents=True)
    (folder / "trainer-1.log").write_text("step 1\nERROR no room\n")
    assert "ERROR no room" in terminal.run("logs", one).stdout
    change_status(first["id"], ExperimentStatus.CANCELLED, message="by the test")
    assert json.loads(terminal.run("watch", one, "--json", code=6).stdout)["status"] == "cancelled"
    assert "cancelled" in terminal.run("watch", one, code=6).stdout
    compared = terminal.json("compare", one, two)
    assert "algorithm.num_steps" in [found["path"] for found in compared["differences"]]
    assert "algorithm.num_steps" in terminal.run("compare", one, two).stdout


def test_a_sweep_is_launched_and_cancelled(terminal):
    words = ("--preset", "first-desk", "--axis", "optimiser.learning_rate = 1e-6, 3e-6", "--seeds", "2")
    made = terminal.json("sweep", "launch", "--name", "rates", *words)
    assert len(made["arms"]) == 2
    pk = str(made["id"])
    assert "rates" in terminal.run("sweep", "show", pk).stdout
    assert terminal.json("sweep", "cancel", pk)["status"] == "cancelled"


def test_entries_are_labelled_and_exported(terminal, team, tmp_path):
    entry = make_replay_entry(team=team, turns=2)
    pk = str(entry.pk)
    assert terminal.json("label", pk, "gold", "--tag", "clean", "--expect", "inbox")["verdict"] == "gold"
    assert terminal.run("label", pk, "rejected", "--expect", "inbox", code=1).stderr
    target = tmp_path / "out.jsonl"
    terminal.run("export", "entries", "-o", str(target))
    [line] = [json.loads(line) for line in target.read_text().splitlines()]
    assert line["metadata"]["deskhand"]["entry"] == entry.pk
    assert line["images"][0].startswith("data:image/png;base64,")
    terminal.run("unlabel")
    assert [row["verdict"] for row in terminal.json("entries")] == ["inbox"]
    assert not list(tmp_path.glob("*.part"))


SCREEN = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def test_a_checked_file_is_counted_and_leaves_nothing_open(terminal, team, tmp_path):
    task = make_task()
    said = {"role": "assistant", "content": '{"action":"terminate","status":"success"}'}
    line = {"messages": [{"role": "user", "content": "<image>\nSave it."}, said], "images": [SCREEN]}
    good = json.dumps({**line, "task_id": task.task_id, "reward": 1.0})
    bad, whole = tmp_path / "one_bad.jsonl", tmp_path / "whole.jsonl"
    bad.write_text(f"{good}\n{{oops\n")
    whole.write_text(good)
    words = ("--task-set", task.task_set.name, "--check")
    for _ in range(MAX_OPEN + 1):
        output = terminal.run("import", str(bad), *words, code=5).stdout
    assert "1 new, 0 here already, 1 bad" in output
    assert "line 2: not JSON" in output
    assert "1 new, 0 here already, 0 bad" in terminal.run("import", str(whole), *words).stdout
    assert terminal.json("import", str(bad), *words, code=5)["problems"][0]["line"] == 2
    assert not ReplayImport.objects.exclude(status="cancelled").exists()
    assert not ReplayEntry.objects.exists()

    output = terminal.run("import", str(bad), *words[:2]).stdout
    assert "finished. 1 new, 1 stored, 0 here already, 1 bad" in output
    assert "1 new" not in terminal.run("import", str(whole), *words).stdout


def test_a_check_that_is_cut_off_leaves_nothing_open(terminal, tmp_path, monkeypatch):
    task = make_task()
    file = tmp_path / "long.jsonl"
    file.write_text("x" * 2**20)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("deskhand_client.cli.curate._waited", interrupted)
    terminal.run("import", str(file), "--task-set", task.task_set.name, "--check", code=1)
    assert [job.status for job in ReplayImport.objects.all()] == ["cancelled"]


def test_groups_tasks_frames_and_machines(terminal, team, tmp_path):
    make_host()
    make_desktop("d1")
    entry = make_replay_entry(team=team, turns=2)
    experiment = make_experiment(team=team)
    group = make_group(experiment=experiment, size=2)
    assert [row["id"] for row in terminal.json("groups", str(experiment.pk))] == [group.pk]
    assert terminal.json("group", str(group.pk))["group"]["size"] == 2
    [task_set] = [row for row in terminal.json("task", "sets") if row["num_tasks"]][:1]
    assert terminal.json("task", "list", task_set["name"])
    frame = entry.trajectory.turns.first().frame
    picture = tmp_path / "frame.png"
    terminal.run("call", "read_frame", f"sha256={frame}", "variant=png", "-o", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")
    kept = tmp_path / "kept"
    make_trajectory(group=group, turns=2)
    terminal.run("export", "trajectories", str(experiment.pk), "-o", str(kept), "--shards", "2")
    assert sorted(file.name for file in kept.iterdir()) == [f"all-0000{n}-of-00002.parquet" for n in (0, 1)]
    assert all(file.read_bytes().startswith(b"PAR1") for file in kept.iterdir())
    assert terminal.json("fleet")["hosts"][0]["name"] == "h1"
    assert [row["name"] for row in terminal.json("desktops")] == ["d1"]
    assert terminal.json("desktop", "d1", "quarantine", "--reason", "odd")["status"] == "asked"
    assert "make join SERVER=" in terminal.run("host", "join").stdout


def test_every_operation_can_be_called_by_its_name(terminal, team):
    answer = terminal.run("call", "save_prices", "gpu_hour=2.5", "currency=EUR")
    assert json.loads(answer.stdout)["gpu_hour"] == 2.5
    assert "takes" in terminal.run("call", "save_prices", "cpu_hour=1", code=2).stderr
    assert "needs pk" in terminal.run("call", "show_experiment", code=2).stderr


def test_a_scope_narrows_and_a_team_is_chosen(live_server, user):
    blue = make_team("blue")
    Membership.objects.create(team=blue, user=user, role="operator")
    reader = create_token(user=user, name="reader", scope=Scope.READ)
    with Client(live_server.url, reader) as client, pytest.raises(ApiError) as refused:
        client.launch_experiment(name="x", preset="first-desk")
    assert (refused.value.status, refused.value.code) == (403, "forbidden")
    with Client(live_server.url, create_token(user=user, name="script"), team="blue") as client:
        made = client.launch_experiment(name="x", preset="first-desk")
        assert made["team"] == "blue"
        assert [row["id"] for row in client.every(client.list_experiments, limit=1)] == [made["id"]]


def test_no_server_is_told_apart():
    with Client("http://127.0.0.1:9", "dh_x") as client, pytest.raises(Unreachable):
        client.show_me()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed(shell):
    done = CliRunner().invoke(main, ["completion", shell])
    assert "_DESKHAND_COMPLETE" in done.stdout


@pytest.mark.slow
def test_the_folder_can_be_installed(tmp_path):
    """Without this repository on the path; a copy, because building leaves folders beside the sources."""
    sources, place = tmp_path / "client", tmp_path / "installed"
    shutil.copytree(REPOSITORY / "deploy" / "client", sources, ignore=shutil.ignore_patterns("build"))
    words = ("-m", "pip", "install", "--no-deps", "--no-build-isolation", "--quiet", "--target", str(place))
    subprocess.run([sys.executable, *words, str(sources)], check=True)
    command = place / "bin" / "deskhand"
    env = {"PYTHONPATH": str(place), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [command, "--help"], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "launch" in done.stdout


def test_a_launch_that_is_sent_again_makes_one_experiment(live_server, user):
    with Client(live_server.url, create_token(user=user, name="script")) as client:
        made = []
        for _ in range(2):
            with client.once("nightly"):
                made.append(client.launch_experiment(name="mine", preset="first-desk")["id"])
        made.append(client.launch_experiment(name="mine", preset="first-desk")["id"])
    assert made[0] == made[1] != made[2]
