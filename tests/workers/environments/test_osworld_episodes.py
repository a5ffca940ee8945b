"""Experiments with provider `osworld`: DesktopEnv sets up, drives and scores one of our desktops."""

from __future__ import annotations

import os
import signal

import pytest

from training.contracts.config import DesktopConfig, ExperimentConfig
from training.contracts.types import Action, ActionKind, Purpose, Source, Task, TrajectoryStatus
from webapp.experiments.models import Experiment, TaskRecord
from webapp.experiments.services.task_sets import import_task_set
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.groups import GroupSpec, create_group
from workers.desktops.contract import EnvError
from workers.env import slots, trajectory_job
from workers.environments.osworld.environment import OsworldEnvironment
from workers.environments.osworld.find_python import FOLDER
from workers.environments.registry import EnvironmentRequest
from workers.tasks.errors import SetupError

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.desktop,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="install it by `make osworld-env`"),
]

NOTE = "/home/user/note.txt"
DESKTOPS = DesktopConfig.model_validate({"provider": "osworld", "osworld": {"pause_s": 0.2}})
DONE = Action(kind=ActionKind.TERMINATE, status="success")
SAVE = Action(kind=ActionKind.KEY, keys=("ctrl", "s"))


def write_note(text: str = "blue <lamp>") -> Task:
    """The editor is open on an empty note; the text is wanted in the file."""
    command = f"touch {NOTE}; cat {NOTE}"
    oracle = (Action(kind=ActionKind.TYPE, text=text), SAVE, DONE)
    return Task(
        task_id="notes/write",
        instruction=f"Write {text!r} and save.",
        screen=(512, 384),
        config=(
            {"type": "execute", "parameters": {"command": command, "shell": True}},
            {"type": "launch", "parameters": {"command": ["mousepad", NOTE]}},
            {"type": "execute", "parameters": {"command": "wmctrl -l", "until": {"stdout": "note.txt"}}},
            {"type": "activate_window", "parameters": {"window_name": "note.txt"}},
        ),
        evaluator={
            "func": "check_include_exclude",
            "result": {"type": "vm_command_line", "command": ["cat", NOTE]},
            "expected": {"type": "rule", "rules": {"include": [text]}},
        },
        oracle={"actions": [action.model_dump(mode="json") for action in oracle]},
    )


@pytest.fixture(autouse=True)
def places(desk_client, settings, tmp_path):
    settings.DESKHOST_SOCKET = desk_client.socket_path
    settings.MEDIA_ROOT = str(tmp_path / "media")
    settings.DATA_DIR = tmp_path / "data"
    yield
    slots.drop_environment()
    assert not list((tmp_path / "data" / "osworld").iterdir()), "a child left its folder behind"


@pytest.fixture
def environment():
    request = EnvironmentRequest.of(DESKTOPS, (512, 384), holder="tests", key="")
    environment = OsworldEnvironment(request)
    yield environment
    environment.close()


def run(task: Task, *sources: Source) -> list[Trajectory]:
    """Trajectories of an experiment, one after the other on one slot."""
    from testing.factories import make_team

    team = make_team()
    import_task_set(name="osworld", origin="test", tasks=[task])
    config = ExperimentConfig(desktops=DESKTOPS).model_dump(mode="json")
    experiment = Experiment.objects.create(team=team, name="osworld", config=config)
    rows = []
    for source in sources:
        request = GroupSpec(
            task=TaskRecord.objects.get(), size=1, purpose=Purpose.VERIFICATION, source=source
        )
        group = create_group(request=request, team_id=team.pk, experiment=experiment)
        row = group.trajectories.get()
        trajectory_job.run(row.pk)
        row.refresh_from_db()
        rows.append(row)
    return rows


def test_the_oracle_scores_one_and_doing_nothing_zero_with_turns_and_screenshots():
    oracle, idle = run(write_note(), Source.ORACLE, Source.SCRIPTED)
    assert (oracle.error, idle.error) == ("", "")
    assert (oracle.score, idle.score) == (1.0, 0.0)
    assert (oracle.status, oracle.num_turns) == (TrajectoryStatus.TERMINATED, 3)
    turns = list(oracle.turns.order_by("index"))
    shas = [turn.frame for turn in turns]
    assert len(set(shas[:2])) == 2, "typing shows on the screen"
    for sha in shas:
        assert read_frame(sha).startswith(b"\x89PNG")


def test_an_infeasible_task_scores_for_the_agent_that_says_so(environment):
    task = Task(task_id="no", instruction="Fly.", evaluator={"func": "infeasible"}, screen=(512, 384))
    for status, score in (("failure", 1.0), ("success", 0.0)):
        environment.prepare(task)
        environment.observe()
        ending = Action(kind=ActionKind.TERMINATE, status=status)
        assert environment.evaluate(task, ending) == score
        environment.reset()


def test_every_trajectory_starts_on_a_clean_desktop(environment):
    task = write_note()
    for _ in range(2):
        environment.prepare(task)
        environment.observe()
        assert environment.evaluate(task, None) == 0.0  # nothing of the last one is left
        environment.prepare(task)
        environment.act(Action(kind=ActionKind.TYPE, text="blue <lamp>"))
        environment.act(SAVE)
        assert environment.evaluate(task, DONE) == 1.0


def test_a_task_that_desktopenv_cannot_run_here_is_not_set_up(environment):
    chrome = {"type": "chrome_open_tabs", "parameters": {"urls_to_open": []}}
    with pytest.raises(SetupError, match="our desktops have no Google Chrome"):
        environment.prepare(write_note().model_copy(update={"config": (chrome,)}))


def test_a_child_that_dies_in_an_episode_errs_it_and_the_next_one_works(environment):
    environment.prepare(write_note())
    os.kill(environment._child.process.pid, signal.SIGKILL)
    with pytest.raises(EnvError, match="the OSWorld process ended"):
        environment.act(SAVE)


def test_a_desktop_that_dies_before_the_evaluation_is_no_zero(environment, desk_client):
    environment.prepare(write_note())
    row = next(row for row in desk_client.list() if row.info.desktop_id == environment.desktop_id)
    os.kill(row.pid, signal.SIGKILL)
    with pytest.raises(EnvError, match="does not answer"):
        environment.evaluate(write_note(), DONE)
