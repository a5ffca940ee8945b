"""What a host keeps on disk of its desktops: a pid record and a folder of each generation."""

import shutil
from pathlib import Path

from workers.processes.cgroups import remove_empty_cgroups
from workers.processes.pid_records import PidRecords


class DesktopFiles:
    """The state folder of one host."""

    def __init__(self, state_dir: Path) -> None:
        self.pids = PidRecords(state_dir / "pids")
        self.folders = state_dir / "d"
        self.folders.mkdir(parents=True, exist_ok=True, mode=0o700)

    def sweep(self) -> int:
        """End what an earlier host started and left, and remove its folders; returns how many processes."""
        ended = self.pids.sweep()
        remove_empty_cgroups()
        for folder in self.folders.iterdir():
            shutil.rmtree(folder, ignore_errors=True)
        return ended
