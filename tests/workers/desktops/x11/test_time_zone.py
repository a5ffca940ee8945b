"""Every desktop has one time zone and locale of its own; a task may name others for its desktop."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.contracts.types import Task
from training.tasks.task_json import LoadError, task_from_osworld, to_osworld
from workers.desktops.agent_client import AgentClient
from workers.desktops.contract import DesktopSpec, EnvError
from workers.desktops.leased_desktop import DesktopEnv
from workers.desktops.windows.qemu_guest_agent_client import GuestAgentClient
from workers.desktops.x11.provider import X11Provider
from workers.desktops.x11.system_root import VARIABLE
from workers.environments.local import setup_key
from workers.environments.osworld.child_process import OsworldProcess
from workers.tasks.errors import SetupError, TaskErrorKind
from workers.tasks.prepare_and_score import setup

pytestmark = pytest.mark.desktop
NEW_YEAR = "date -d @1767225599 '+%F %H:%M %Z'"
"""A second before 2026 in UTC."""
IN_UTC = "2025-12-31 23:59 UTC"
PYTHON_CLOCK = "import time; print(time.strftime('%F %H:%M %Z', time.localtime(1767225599)))"


def task(**fields: str) -> Task:
    return Task(task_id="t", instruction="What is the date?", evaluator={"func": "infeasible"}, **fields)


def clocks(desktop: DesktopEnv) -> list[str]:
    """What a command, the loaded Python, and a program without TZ in its environment say."""
    run = desktop.agent.execute
    told = [run(NEW_YEAR, shell=True), run(["python3", "-c", PYTHON_CLOCK])]
    return [found.output.strip() for found in told]


@pytest.fixture
def indian_host(tmp_path: Path, monkeypatch) -> None:
    """A host in India, as far as its files and its environment say."""
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "usr").symlink_to("/usr")
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        if Path("/", name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
    for name in ("fonts", "alternatives", "X11", "xdg", "ld.so.cache"):
        (root / "etc" / name).symlink_to(f"/etc/{name}")
    (root / "etc/localtime").symlink_to("/usr/share/zoneinfo/Asia/Kolkata")
    monkeypatch.setenv(VARIABLE, str(root))
    for name, value in {"TZ": "Asia/Kolkata", "LANG": "hi_IN", "LC_ALL": "hi_IN"}.items():
        monkeypatch.setenv(name, value)


async def test_a_hosts_zone_and_locale_reach_no_desktop(indian_host, short_dir):
    provider = X11Provider()
    if not provider.is_sandboxed:
        pytest.skip("needs bubblewrap")
    desktop = await provider.create("here", DesktopSpec(), short_dir / "d")
    try:
        with AgentClient(desktop.endpoints.agent) as agent:
            for command in (NEW_YEAR, f"env -u TZ {NEW_YEAR}"):
                assert agent.execute(command, shell=True).output.strip() == IN_UTC
            assert agent.execute("locale | sort -u | grep -v =.*C.UTF-8", shell=True).output.split() == [
                "LANGUAGE=",
                "LC_ALL=",
            ]
    finally:
        await desktop.destroy()


@pytest.mark.parametrize(
    ("zone", "there"),
    [
        ("Asia/Kolkata", "2026-01-01 05:29 IST"),
        ("America/New_York", "2025-12-31 18:59 EST"),
        ("Etc/GMT-14", "2026-01-01 13:59 +14"),
    ],
)
def test_a_tasks_zone_is_the_one_of_its_desktop_until_the_reset(desktop, zone, there):
    assert clocks(desktop) == [IN_UTC] * 2
    setup(task(timezone=zone), desktop)
    assert clocks(desktop) == [there] * 2
    desktop.agent.launch(f"{NEW_YEAR} > ~/launched", shell=True)
    while not desktop.agent.get("~/launched"):
        pass
    assert desktop.agent.get("~/launched").decode().strip() == there
    assert not desktop.reset().rebuilt
    assert clocks(desktop) == [IN_UTC] * 2


def test_a_tasks_locale_is_set_and_one_that_is_not_installed_is_refused_by_name(desktop):
    setup(task(locale="POSIX"), desktop)
    assert desktop.agent.execute(["printenv", "LANG"]).output == "POSIX\n"
    with pytest.raises(SetupError, match=r"no 'xx_XX\.UTF-8'") as refused:
        setup(task(locale="xx_XX.UTF-8"), desktop)
    assert refused.value.kind is TaskErrorKind.UNSUPPORTED


@pytest.mark.parametrize("zone", ["Asia", "../../../etc/passwd", "Mars/Olympus"])
def test_a_desktop_without_the_zone_refuses_it_by_name(desktop, zone):
    with pytest.raises(EnvError, match=f"no '{zone}'"):
        desktop.agent.use_place(zone, "")
    assert clocks(desktop) == [IN_UTC] * 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("timezone", "Europe/Zurch"),
        ("timezone", "a b"),
        ("timezone", 3),
        ("locale", "de DE"),
        ("locale", "/x"),
    ],
)
def test_what_is_no_zone_or_locale_is_refused_when_the_task_is_read(field, value):
    with pytest.raises(LoadError, match=field):
        task_from_osworld({"id": "t", "instruction": "x", field: value}, where="t.json")


def test_zone_and_locale_come_back_from_a_written_task():
    values = {"id": "t", "instruction": "x", "timezone": "Asia/Kolkata", "locale": "de_DE.UTF-8"}
    read = task_from_osworld(values, where="t.json")
    assert task_from_osworld(to_osworld(read), where="again") == read
    assert (read.timezone, read.locale) == ("Asia/Kolkata", "de_DE.UTF-8")


def test_a_kept_setup_is_not_shared_by_tasks_of_two_zones():
    keys = {setup_key(task()), setup_key(task(timezone="Asia/Tokyo")), setup_key(task(locale="de_DE"))}
    assert len(keys) == 3


def test_a_guest_that_keeps_its_own_zone_says_so():
    with pytest.raises(EnvError, match="cannot be set"):
        GuestAgentClient("/nowhere").use_place("Asia/Tokyo", "")


def test_osworlds_child_reckons_in_utc_wherever_its_host_is(indian_host, short_dir):
    python = short_dir / "python"
    python.write_text('#!/bin/sh\nprintf \'{"ready": true, "TZ": "%s"}\\n\' $TZ; env > ../env; exec cat\n')
    python.chmod(0o755)
    child = OsworldProcess(python, short_dir / "c", pass_on={}, on_ask=lambda _: None)
    child.close()
    seen = (short_dir / "c" / "env").read_text().splitlines()
    assert {"TZ=UTC", "LANG=C.UTF-8"} <= set(seen)
    assert not [line for line in seen if "hi_IN" in line]
