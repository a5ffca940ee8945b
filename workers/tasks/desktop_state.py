"""What stands on a desktop at one moment, as JSON: a task is made from what changes between two of them.

    {"home", "programs": of `PROGRAMS` those that are there, "folders": [path],
     "windows": [{title, window_class, x, y, width, height, active, pid, program, command}],
     "files": [{path, stamp, bytes, text | base64, document}]}
Files are those of HOME; the content of large ones is left out.
"""

import base64
import json
from dataclasses import asdict
from typing import Any

from workers.desktops.contract import EnvError, ErrorKind
from workers.tasks.evaluators.office_document import office_document
from workers.tasks.task_desktop_contract import TaskDesktop

PROGRAMS = (
    "mousepad", "xterm", "pcmanfm", "galculator", "libreoffice", "chromium", "gimp", "vlc", "evince", "eog",
    "gnome-terminal", "nautilus", "thunderbird",
)  # fmt: skip
"""That people may want to begin with."""
LIMITS = {"files": 400, "file_bytes": 200_000, "all_bytes": 1_000_000}
OFFICE_ENDINGS = (".odt", ".ods", ".odp")
SCRIPT = """
import base64, json, os, shutil, subprocess, sys
limits, programs = json.loads(sys.argv[1]), json.loads(sys.argv[2])
home, room, files, folders = os.path.expanduser("~"), limits["all_bytes"], [], []
skipped = {".cache", ".dbus", ".mozilla", ".pki", ".gnupg", "chromium", "google-chrome", "libreoffice",
           "dconf", "Trash", "ibus", "pulse", "gvfs-metadata"}
for base, below, names in os.walk(home):
    below[:] = sorted(name for name in below if name not in skipped)
    folders += [os.path.join(base, name) for name in below]
    for name in sorted(names):
        path = os.path.join(base, name)
        try:
            about = os.lstat(path)
            if os.path.islink(path) or not os.path.isfile(path) or len(files) >= limits["files"]:
                continue
            entry = {"path": path, "stamp": str(about.st_mtime_ns), "bytes": about.st_size}
            if about.st_size <= min(limits["file_bytes"], room):
                with open(path, "rb") as file:
                    data = file.read(limits["file_bytes"])
                room -= len(data)
                try:
                    entry["text"] = data.decode()
                except UnicodeDecodeError:
                    entry["base64"] = base64.b64encode(data).decode()
            files.append(entry)
        except OSError:
            continue
windows = {}
for line in subprocess.run(["wmctrl", "-l", "-p"], capture_output=True, text=True).stdout.splitlines():
    number, _, pid = line.split(None, 3)[:3]
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = [word.decode(errors="replace") for word in file.read().split(b"\\0") if word]
        with open(f"/proc/{pid}/comm") as file:
            windows[str(int(number, 16))] = {"pid": pid, "command": command, "program": file.read().strip()}
    except OSError:
        continue
print(json.dumps({"home": home, "files": files, "folders": folders[:limits["files"]], "processes": windows,
                  "programs": [name for name in programs if shutil.which(name)]}))
"""


def look(desktop: TaskDesktop) -> dict[str, Any]:
    """The state now. Raises EnvError."""
    result = desktop.agent.execute(["python3", "-c", SCRIPT, json.dumps(LIMITS), json.dumps(PROGRAMS)])
    if result.returncode:
        raise EnvError(f"the desktop could not be looked at: {result.error[-300:]}", kind=ErrorKind.GUEST)
    state: dict[str, Any] = json.loads(result.output)
    processes = state.pop("processes")
    state["windows"] = []
    for window in desktop.windows():
        fields = asdict(window)
        number, is_active = str(fields.pop("window_id")), fields.pop("is_active")
        state["windows"].append({**fields, "active": is_active, **processes.get(number, {})})
    for file in state["files"]:
        if file["path"].endswith(OFFICE_ENDINGS) and "base64" in file:
            file["document"] = office_document(base64.b64decode(file["base64"]))
    return state
