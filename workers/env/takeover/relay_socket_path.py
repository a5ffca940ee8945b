"""Names the unix socket that a process's relay listens on, and removes those of dead processes."""

import atexit
import logging
import os
import socket
import tempfile
from pathlib import Path

from workers.processes.unix_socket import MAX_PATH_BYTES, connect_unix

log = logging.getLogger(__name__)

PROBE_LIMIT_S = 5.0


def socket_path(folder: Path) -> Path:
    """A name of this process's own, short enough for a socket address; those of dead processes go."""
    folder.mkdir(parents=True, exist_ok=True)
    host = socket.gethostname()[:24]  # containers that share the folder have equal process ids
    for old in folder.glob(f"screens-{host}-*.sock"):
        try:
            connect_unix(str(old), PROBE_LIMIT_S).close()
        except ConnectionRefusedError:
            old.unlink(missing_ok=True)
        except OSError:
            log.info("left alone: %s", old)
    path = folder / f"screens-{host}-{os.getpid()}.sock"
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        atexit.register(path.unlink, missing_ok=True)
        return path
    return Path(tempfile.mkdtemp(prefix="screens-")) / "s"
