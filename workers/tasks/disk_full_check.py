"""Was there room to work in? On a full desktop programs cannot save, whatever the agent did."""

from workers.desktops.contract import EnvError
from workers.desktops.leased_desktop import DesktopEnv

LEAST_KIB = 128
"""Less free space than this, and the documents of our tasks cannot be written safely."""


def require_room(desktop: DesktopEnv) -> None:
    """Raise EnvError when HOME or /tmp is full: a failure to save there says nothing about the agent."""
    if desktop.agent.platform != "linux":
        return  # a Windows guest's disk is gigabytes beyond what a trajectory writes
    answer = desktop.agent.execute(["df", "-Pk", desktop.home, "/tmp"])
    for line in answer.output.splitlines()[1:]:
        columns = line.split()
        if len(columns) >= 6 and columns[3].isdigit() and int(columns[3]) < LEAST_KIB:
            raise EnvError(f"the desktop's disk is full: {columns[3]} KiB free at {columns[5]}")
