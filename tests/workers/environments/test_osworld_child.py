"""A real DesktopEnv 1.0.2 in its own process: what it answers, and what its failures become."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testing.workers.osworld_agent import Agent, png
from training.contracts.types import Task
from workers.desktops.console_contract import ActionRefused
from workers.desktops.contract import EnvError
from workers.environments.osworld.child.download_cache import KeptFiles
from workers.environments.osworld.child_messages import (
    Act,
    Evaluate,
    Open,
    Opened,
    Prepare,
    Score,
    Screenshot,
)
from workers.environments.osworld.child_process import OsworldProcess, remove_abandoned
from workers.environments.osworld.environment import osworld_task
from workers.environments.osworld.find_python import FOLDER
from workers.tasks.errors import EvaluatorError, SetupError, TaskErrorKind

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="install it by `make osworld-env`")

PYTHON = FOLDER / "bin" / "python"
LIMIT_S = 120.0
LEVEL_FILE = FOLDER / ".deskhand-level"
HAS_ALL_PACKAGES = LEVEL_FILE.is_file() and LEVEL_FILE.read_text().split()[0] == "full"


@dataclass
class Bench:
    """A child with an open DesktopEnv, its desktop, and what it asked for."""

    child: OsworldProcess
    agent: Agent
    reverts: list[str]
    folder: Path


@contextmanager
def bench(*, is_open: bool = True) -> Iterator[Bench]:
    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    (folder / "home").mkdir()
    agent, reverts = Agent(folder / "agent.sock", folder / "home"), []
    child = OsworldProcess(PYTHON, folder / "children", pass_on={}, on_ask=reverts.append)
    try:
        child.point(str(folder / "agent.sock"))
        if is_open:
            child.call("open", options(folder), Opened, LIMIT_S)
        yield Bench(child, agent, reverts, folder)
    finally:
        child.close()
        agent.stop()
        shutil.rmtree(folder)


def options(folder: Path) -> Open:
    return Open(
        provider="hosted",
        downloads=str(folder / "downloads"),
        checkout="",
        strict_setup=True,
        console_camera=False,
        screen_size=(64, 48),
        os_type="Ubuntu",
        headless=True,
        client_password="",
    )


@pytest.fixture(scope="module")
def shared() -> Iterator[Bench]:
    with bench() as made:
        yield made


@pytest.fixture
def child(shared: Bench) -> OsworldProcess:
    shared.agent.behave()
    shared.reverts.clear()
    shutil.rmtree(shared.folder / "home")
    (shared.folder / "home").mkdir()
    return shared.child


@pytest.fixture
def agent(shared: Bench) -> Agent:
    return shared.agent


@pytest.fixture
def doomed() -> Iterator[Bench]:
    """For tests that end the child."""
    with bench() as made:
        yield made


def task(evaluator: dict[str, Any] | None = None, *config: dict[str, Any]) -> dict[str, Any]:
    return {"id": "t", "instruction": "Do it.", "config": list(config), "evaluator": evaluator or says("yes")}


def says(text: str) -> dict[str, Any]:
    """The command `cat answer` prints `text`."""
    return {
        "func": "exact_match",
        "result": {"type": "vm_command_line", "command": "cat answer", "shell": True},
        "expected": {"type": "rule", "rules": {"expected": text}},
    }


def execute(command: str) -> dict[str, Any]:
    return {"type": "execute", "parameters": {"command": command, "shell": True}}


def prepare(child: OsworldProcess, wanted: dict[str, Any], *, is_clean: bool = True) -> bytes:
    return child.call("prepare", Prepare(task=wanted, is_clean=is_clean), Screenshot, LIMIT_S).screenshot


def act(child: OsworldProcess, action: str) -> bytes:
    return child.call("act", Act(action=action, pause_s=0, settle_s=0), Screenshot, LIMIT_S).screenshot


def score(child: OsworldProcess, ending: Any = "DONE") -> float:
    return child.call("evaluate", Evaluate(ending=ending), Score, LIMIT_S).score


def test_a_task_is_set_up_acted_on_and_scored_by_desktopenv(child, agent):
    assert prepare(child, task(None, execute("printf no > answer"))) == agent.screenshot
    agent.screenshot = png("green")
    assert act(child, "pyautogui.click(3, 4)") == agent.screenshot
    assert agent.actions == ["pyautogui.click(3, 4)"]
    assert score(child) == 0.0
    prepare(child, task(None, execute("printf yes > answer")))
    assert score(child) == 1.0


def test_a_score_is_given_once_per_episode(child):
    prepare(child, task(None, execute("printf yes > answer")))
    assert score(child) == 1.0
    with pytest.raises(EvaluatorError, match="scored: prepare a task before each score"):
        score(child)


@pytest.mark.parametrize(("ending", "expected"), [("FAIL", 1.0), ("DONE", 0.0), ("", 0.0)])
def test_an_infeasible_task_scores_only_for_fail(child, ending, expected):
    prepare(child, task({"func": "infeasible"}))
    assert score(child, ending) == expected


def test_fail_on_a_feasible_task_scores_nothing(child):
    prepare(child, task(None, execute("printf yes > answer")))
    assert score(child, "FAIL") == 0.0


def test_wait_reaches_the_environment_and_not_the_desktop(child, agent):
    prepare(child, task())
    act(child, "WAIT")
    assert agent.actions == []


def test_an_action_that_fails_in_the_desktop_is_refused_and_the_episode_goes_on(child):
    prepare(child, task(None, execute("printf yes > answer")))
    with pytest.raises(ActionRefused, match="bad key"):
        act(child, "pyautogui.press('nosuchkey')")
    assert score(child) == 1.0


def test_a_missing_screenshot_is_an_infrastructure_error(child, agent):
    agent.refuse.add("/screenshot")
    with pytest.raises(EnvError, match="gave no screenshot"):
        prepare(child, task())


def test_a_desktop_lost_during_the_evaluation_is_no_zero(child, agent):
    prepare(child, task({**says("yes"), "result": {"type": "vm_file", "path": "/answer", "dest": "answer"}}))
    agent.drop.add("/file")
    with pytest.raises(EnvError, match="does not answer: POST /file"):
        score(child)


def test_a_missing_file_is_a_zero_at_once(child):
    started = time.monotonic()
    evaluator = {
        "func": "compare_text_file",
        "result": {"type": "vm_file", "path": "/answer", "dest": "answer"},
        "expected": {"type": "vm_file", "path": "/wanted", "dest": "wanted"},
    }
    prepare(child, task(evaluator, execute("echo x > wanted")))
    assert score(child) == 0.0
    assert time.monotonic() - started < 14  # DesktopEnv itself waits 15 s for a file that is not there


def test_a_refused_setup_step_fails_the_task(child, agent):
    agent.refuse.add("/setup/execute")
    with pytest.raises(SetupError, match="/setup/execute: refused by the test"):
        prepare(child, task(None, execute("true")))


def test_an_unknown_setup_step_or_metric_names_itself(child):
    with pytest.raises(SetupError, match="_teleport_setup"):
        prepare(child, task(None, {"type": "teleport", "parameters": {}}))
    with pytest.raises(SetupError, match="no_such_metric"):
        prepare(child, task({**says("x"), "func": "no_such_metric"}))


def test_an_evaluator_that_breaks_is_an_error(child):
    prepare(child, task({**says("x"), "expected": {"type": "rule", "rules": {}}}))
    with pytest.raises(EvaluatorError, match="KeyError: 'expected'"):
        score(child)


@pytest.mark.skipif(HAS_ALL_PACKAGES, reason="level full has every package")
def test_a_metric_whose_package_is_missing_is_an_error_even_if_it_hides_it(child, shared):
    # check_structure_sim answers 0 to every exception.
    (shared.folder / "home" / "a.png").write_bytes(png("red"))
    files = {"type": "vm_file", "path": "/a.png", "dest": "a.png"}
    prepare(child, task({"func": "check_structure_sim", "result": files, "expected": files}))
    with pytest.raises(EvaluatorError, match="needs the package scikit-image") as caught:
        score(child)
    assert caught.value.kind is TaskErrorKind.UNSUPPORTED


def test_downloads_stay_and_results_of_the_last_episode_do_not(child, shared):
    url = "http://127.0.0.1:9/gold.txt"
    (shared.folder / "gold.txt").write_text("yes")
    kept = KeptFiles(shared.folder / "downloads")
    sha256 = kept.put(url, shared.folder / "gold.txt")
    evaluator = {
        "func": "compare_text_file",
        "result": {"type": "vm_file", "path": "/answer", "dest": "answer"},
        "expected": {"type": "cloud_file", "path": url, "dest": "gold.txt"},
    }
    prepare(child, task(evaluator, execute("printf yes > answer")))
    assert score(child) == 1.0
    assert {path.name for path in child.folder.glob("cache/t/*")} == {"answer", "gold.txt"}
    prepare(child, task(evaluator, execute("rm answer")))
    assert {path.name for path in child.folder.glob("cache/t/*")} == {"gold.txt"}
    assert score(child) == 0.0
    (shared.folder / "downloads" / "content" / sha256).write_text("no")
    with pytest.raises(SetupError, match=f"{sha256} is damaged"):
        prepare(child, task(evaluator))
    kept.put(url, shared.folder / "gold.txt")


def test_inline_uploads_reach_the_desktop_as_files(child, agent):
    upload = {"type": "upload_file", "parameters": {"files": [{"path": "/x", "content": "hello"}]}}
    with pytest.raises(SetupError, match="no such route"):  # of this agent
        prepare(child, task(None, upload))
    assert "/setup/upload" in agent.requests


def test_a_used_desktop_is_reverted_by_asking_for_it(child, shared):
    prepare(child, task())
    act(child, "pyautogui.click(1, 1)")
    prepare(child, task(), is_clean=True)
    assert shared.reverts == []
    act(child, "pyautogui.click(1, 1)")
    prepare(child, task(), is_clean=False)
    assert shared.reverts == ["revert"]


def test_prints_of_the_library_do_not_reach_the_protocol(child):
    # exact_match prints its arguments.
    prepare(child, task(None, execute("printf '{\"id\": 1}' > answer")))
    assert score(child) == 0.0
    assert '{"id": 1}' in (child.folder / "child.log").read_text()


def test_the_child_knows_no_settings_and_secrets_of_ours(child):
    environment = Path(f"/proc/{child.process.pid}/environ").read_text()
    assert "DJANGO" not in environment
    assert "DESKHAND" not in environment


def test_a_killed_child_is_an_error_with_its_last_words(doomed):
    os.kill(doomed.child.process.pid, signal.SIGKILL)
    with pytest.raises(EnvError, match=r"ended \(exit status -9\)"):
        prepare(doomed.child, task())


def test_a_child_that_hangs_is_ended(doomed):
    wanted = Prepare(task=task(None, execute("sleep 5")), is_clean=True)
    with pytest.raises(EnvError, match="gave no answer to prepare in time"):
        doomed.child.call("prepare", wanted, Screenshot, 1.0)
    assert doomed.child.process.poll() is not None


def test_closing_leaves_no_process_and_no_folder(doomed):
    child = doomed.child
    child.close()
    child.close()
    assert not child.folder.exists()
    assert child.process.poll() is not None


def test_a_child_whose_parent_died_ends_and_cleans_up(doomed):
    doomed.child.process.stdin.close()
    doomed.child.process.wait(LIMIT_S)
    assert not doomed.child.folder.exists()


def test_folders_of_killed_workers_are_removed_and_living_ones_stay(child, shared):
    abandoned = shared.folder / "children" / "1-1"
    abandoned.mkdir()
    (abandoned / "owner.lock").touch()
    remove_abandoned(shared.folder / "children")
    assert not abandoned.exists()
    assert child.folder.exists()


def test_screenshots_may_come_from_the_worker_instead_of_the_desktop():
    with bench(is_open=False) as made:
        screen = made.child.folder / "screen.png"
        made.child._on_ask = lambda question: screen.write_bytes(png("gold")) and None
        wanted = options(made.folder).model_copy(update={"console_camera": True})
        made.child.call("open", wanted, Opened, LIMIT_S)
        assert prepare(made.child, task()) == png("gold")
        screen.unlink()
        assert act(made.child, "pyautogui.click(1, 1)") == png("gold")
        assert "/screenshot" not in made.agent.requests


@pytest.mark.skipif(Path("/var/run/docker.sock").exists(), reason="there is a Docker engine here")
def test_a_task_that_expects_a_proxy_gets_desktopenvs_where_that_is_enabled():
    with bench(is_open=False) as made:
        opening = options(made.folder).model_copy(update={"enable_proxy": True})
        made.child.call("open", opening, Opened, LIMIT_S)
        expecting = Task(task_id="t", instruction="Go.", evaluator=says("yes"), published={"proxy": True})
        with pytest.raises(SetupError, match="No proxy available from proxy pool"):
            prepare(made.child, osworld_task(expecting))
        prepare(made.child, osworld_task(expecting.model_copy(update={"published": {"fixed_ip": True}})))


def test_a_provider_of_desktopenv_without_its_engine_says_so():
    change = {"provider": "docker", "path_to_vm": "/nowhere.qcow2"}
    with bench(is_open=False) as made:
        wanted = options(made.folder).model_copy(update=change)
        with pytest.raises((EnvError, SetupError), match="[Dd]ocker"):
            made.child.call("open", wanted, Opened, LIMIT_S)
