"""What a desk host counts as left over: twice seen, and no living desktop's."""

import os
import subprocess
import sys
from pathlib import Path

from workers.desktops.host.desktop_files import DesktopFiles
from workers.desktops.host.leak_watch import LeakWatch


def test_the_group_of_a_machine_that_becomes_a_template_is_no_leftover(tmp_path: Path):
    groups = tmp_path / "cgroup" / "memory"
    for name in ("making-17-4711-0badcafe", "d0badca-1", "dcafe00-3"):
        (groups / f"deskhand-{os.getpid()}-{name}").mkdir(parents=True)
    watch = LeakWatch(DesktopFiles(tmp_path / "host"), groups.parent)
    watch.look(["dcafe00-3"])
    assert watch.leaks == []
    watch.look(["dcafe00-3"])
    assert [(leak.kind, leak.name) for leak in watch.leaks] == [
        ("cgroup", f"memory/deskhand-{os.getpid()}-d0badca-1")
    ]


def test_a_process_that_names_the_folder_of_no_living_desktop_is_left_over(tmp_path: Path):
    files = DesktopFiles(tmp_path / "host")
    code = [sys.executable, "-c", "print(flush=True); input()"]
    lost, kept = (
        subprocess.Popen([*code, f"{files.folders}/{name}/x"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for name in ("dbadcaf-1", "dcafe00-3")
    )
    try:
        for process in (lost, kept):
            assert process.stdout
            process.stdout.readline()  # for a moment after its start a process has no command line
        watch = LeakWatch(files)
        watch.look(["dcafe00-3"])
        watch.look(["dcafe00-3"])
        found = [(leak.kind, leak.name) for leak in watch.leaks if leak.kind == "process"]
        assert found == [("process", f"dbadcaf-1:{lost.pid}")]
    finally:
        for process in (lost, kept):
            process.kill()
            process.wait()
