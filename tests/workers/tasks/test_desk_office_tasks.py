"""Some tasks of desk-office on a real desktop; benchmarks/desktops/desk_office.py proves all of them."""

import asyncio
import os
import shutil
from collections.abc import Iterator

import pytest

from testing.workers.prove_task import prove
from testing.workers.short_episodes import key, play, typed
from training.content.task_sets.desk_office import generate
from training.contracts.config.providers.x11 import OFFICE_FIELDS
from workers.desktops.contract import DesktopSpec, EnvError
from workers.desktops.leased_desktop import DesktopEnv
from workers.desktops.x11.provider import X11Provider
from workers.tasks.errors import SetupError

TASKS = {task.task_id.removeprefix("desk-office/"): task for task in generate()}
needs_office = pytest.mark.skipif(not shutil.which("soffice"), reason="make setup-office")

pytestmark = pytest.mark.desktop


@pytest.fixture
def wide_desktop(desk_client) -> Iterator[DesktopEnv]:
    spec = DesktopSpec(width=1024, height=768, **(OFFICE_FIELDS if shutil.which("soffice") else {}))
    lease = desk_client.acquire("x11", spec, holder=f"tests-{os.getpid()}", ttl_s=300)
    with DesktopEnv(desk_client, lease) as env:
        yield env


@pytest.mark.parametrize(
    "name",
    [
        "editor/replace/0002",
        "settings/files-preferences/0000",
        "several/rename-and-edit/0001",
        pytest.param("browser/carry-over/0000", marks=[needs_office, pytest.mark.slow]),
        pytest.param("calc/sort/0000", marks=[needs_office, pytest.mark.slow]),
        pytest.param("writer/face/0000", marks=[needs_office, pytest.mark.slow]),
        pytest.param("impress/title/0000", marks=[needs_office, pytest.mark.slow]),
    ],
)
def test_the_oracle_scores_1_and_doing_nothing_0(name, wide_desktop):
    assert prove(TASKS[name], wide_desktop).holds


def test_the_right_line_in_the_wrong_place_scores_0(wide_desktop):
    task = TASKS["editor/append/0000"]
    line = task.oracle["actions"][1]["text"]
    assert play(task, wide_desktop, [typed(line + "\n"), key("ctrl", "s")]) == 0.0


def test_a_desktop_without_the_program_says_so(desktop):
    task = TASKS["calc/sort/0000"]
    nowhere = {"type": "launch", "parameters": {"command": ["chromium-that-is-not-there"]}}
    with pytest.raises(SetupError, match="cannot start"):
        play(task.model_copy(update={"config": (nowhere,)}), desktop, [])


def test_an_office_desktop_is_refused_where_libreoffice_is_missing(monkeypatch, short_dir):
    (short_dir / "root" / "usr" / "bin").mkdir(parents=True)
    monkeypatch.setenv("DESKHAND_DESKTOP_ROOT", str(short_dir / "root"))
    with pytest.raises(EnvError, match="make setup-office") as refused:
        asyncio.run(X11Provider().create("d", DesktopSpec(**OFFICE_FIELDS), short_dir / "desktop"))
    assert refused.value.permanent
