"""The supervisor over real processes: ready, restarted, stopped, and nothing left behind."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from testing.small_disk import leave_free, make_room, small_disk
from webapp.lib.supervisor.logs import Terminal
from webapp.lib.supervisor.orphans import marked
from webapp.lib.supervisor.supervised_process import ProcessSpec, ProcessState
from webapp.lib.supervisor.supervisor import StartFailed, Supervisor

SLEEPER = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPER}"
PARENT_OF_RUNAWAY = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {SLEEPER!r}], start_new_session=True)
{SLEEPER}
"""


def python_child(folder: Path, name: str, program: str, **options: object) -> ProcessSpec:
    return ProcessSpec(
        name=name,
        argv=[sys.executable, "-c", program],
        env={**os.environ, "DESKHAND_DATA_DIR": str(folder)},
        cwd=folder,
        ready_line="^up$",
        **options,
    )


def left_of(folder: Path) -> list[int]:
    return [pid for pid, mark in marked() if mark.startswith(f"{folder}|")]


@pytest.fixture
async def supervisor(tmp_path):
    made = Supervisor(tmp_path, tmp_path / "logs", Terminal(show_children=False))
    yield made
    await made.stop()


async def until(condition, timeout_s=60):
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.02)


async def test_a_stage_is_over_when_all_its_processes_are_ready(supervisor, tmp_path):
    await supervisor.start([python_child(tmp_path, "a", SLEEPER), python_child(tmp_path, "b", SLEEPER)])
    assert [child.state for child in supervisor.children] == [ProcessState.READY, ProcessState.READY]
    assert len(left_of(tmp_path)) == 2


async def test_output_goes_into_a_file_with_the_time(supervisor, tmp_path):
    await supervisor.start([python_child(tmp_path, "a", SLEEPER)])
    text = (tmp_path / "logs" / "a.log").read_text()
    assert text.endswith("Z up\n")
    assert text[:2] == "20"


TALKER = f"""
import sys, time
from pathlib import Path
print('up', flush=True)
while not Path('talk').exists():
    time.sleep(0.02)
for number in range(3000):
    print(number, 'x' * 100, flush=True)
Path('said').touch()
while not Path('go on').exists():
    time.sleep(0.02)
print('there is room again', flush=True)
{SLEEPER}
"""


async def test_a_full_disk_costs_a_process_its_log_and_not_its_life(tmp_path):
    with small_disk(tmp_path / "logs", 1) as disk:
        supervisor = Supervisor(tmp_path, disk, Terminal(show_children=False))
        try:
            await supervisor.start([python_child(tmp_path, "talker", TALKER)])
            leave_free(disk, 0)
            (tmp_path / "talk").touch()
            await until((tmp_path / "said").exists)  # more than the pipe holds: it is read on
            make_room(disk)
            (tmp_path / "go on").touch()
            log = disk / "talker.log"
            await until(lambda: "there is room again" in log.read_text())
            assert "lines are lost: the disk was full" in log.read_text()
            assert supervisor.children[0].num_starts == 1
        finally:
            await supervisor.stop()


async def test_a_killed_process_is_started_again(supervisor, tmp_path):
    await supervisor.start([python_child(tmp_path, "a", SLEEPER)])
    child = supervisor.children[0]
    first = child.process.pid
    os.kill(first, signal.SIGKILL)
    await until(lambda: child.num_starts == 2 and child.state is ProcessState.READY)
    assert child.process.pid != first


async def test_what_a_killed_process_started_in_another_session_dies_with_it(supervisor, tmp_path):
    await supervisor.start([python_child(tmp_path, "a", PARENT_OF_RUNAWAY)])
    child = supervisor.children[0]
    await until(lambda: len(left_of(tmp_path)) == 2)
    runaway = next(pid for pid in left_of(tmp_path) if pid != child.process.pid)
    os.kill(child.process.pid, signal.SIGKILL)
    await until(lambda: runaway not in left_of(tmp_path))


async def test_stopping_leaves_nothing_of_a_process_that_ignores_sigterm(supervisor, tmp_path):
    stubborn = python_child(tmp_path, "stubborn", STUBBORN, grace_s=0.2)
    await supervisor.start([stubborn, python_child(tmp_path, "parent", PARENT_OF_RUNAWAY)])
    await until(lambda: len(left_of(tmp_path)) == 3)
    await supervisor.stop()
    assert left_of(tmp_path) == []
    assert {child.state for child in supervisor.children} == {ProcessState.STOPPED}


async def test_later_waves_are_stopped_after_earlier_ones_have_ended(supervisor, tmp_path):
    say_when_stopped = f"""
import signal, sys, time
def end(*_):
    with open("order", "a") as file: file.write(sys.argv[1])
    sys.exit()
signal.signal(signal.SIGTERM, end)
{SLEEPER}
"""
    specs = []
    for name, wave in (("x", 2), ("y", 0), ("z", 1)):
        spec = python_child(tmp_path, name, say_when_stopped, stop_wave=wave)
        spec.argv.append(name)
        specs.append(spec)
    await supervisor.start(specs)
    await supervisor.stop()
    assert (tmp_path / "order").read_text() == "yzx"


async def test_a_process_that_never_comes_up_is_reported_with_the_end_of_its_log(supervisor, tmp_path):
    broken = python_child(tmp_path, "broken", "raise SystemExit('no such model: qwen')")
    with pytest.raises(StartFailed, match="broken does not start(.|\n)*no such model: qwen"):
        await supervisor.start([broken])
