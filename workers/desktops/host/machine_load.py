"""Resources of the machine, for the fleet page."""

import os
from pathlib import Path

import psutil

from workers.desktops.host.messages import Machine

MIB = 1 << 20


def measure_machine(folder: Path) -> Machine:
    """Cores, CPU since the last call, memory, and the file system that holds `folder`."""
    memory, disk = psutil.virtual_memory(), psutil.disk_usage(str(folder))
    return Machine(
        cores=os.cpu_count() or 1,
        cpu_percent=psutil.cpu_percent(),
        load=round(os.getloadavg()[0], 2),
        memory_mb=round(memory.total / MIB),
        memory_used_mb=round((memory.total - memory.available) / MIB),
        disk_mb=round(disk.total / MIB),
        disk_free_mb=round(disk.free / MIB),
    )
