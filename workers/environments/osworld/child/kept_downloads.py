"""Files that tasks fetch from the internet, kept between episodes and processes.

DesktopEnv's cache holds both what a task downloaded and what an evaluator fetched from the desktop, under
the same names for every episode of a task. Each episode gets an empty cache, in which only the
downloads of earlier ones lie.
"""

import os
import re
import shutil
from pathlib import Path
from typing import Any

SETUP_DOWNLOAD = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}_")


class Downloads:
    """`cache` is DesktopEnv's, private; `kept` is shared by all processes of the machine."""

    def __init__(self, cache: Path, kept: Path) -> None:
        self._cache, self._kept = cache, kept

    def lay_out(self, task_id: str) -> None:
        """An empty cache for the task, but for its downloads."""
        shutil.rmtree(self._cache, ignore_errors=True)
        kept = self._kept / task_id
        if kept.is_dir():
            shutil.copytree(kept, self._cache / task_id)

    def keep(self, task: dict[str, Any]) -> None:
        """Move what this episode downloaded to the shared folder; the file appears there at once or not."""
        task_id = str(task["id"])
        folder, kept = self._cache / task_id, self._kept / task_id
        wanted = set(cloud_files(task.get("evaluator", {})))
        for file in folder.iterdir() if folder.is_dir() else ():
            is_download = file.name in wanted or SETUP_DOWNLOAD.match(file.name)
            if is_download and file.is_file() and not (kept / file.name).exists():
                kept.mkdir(parents=True, exist_ok=True)
                partial = kept / f".{os.getpid()}-{file.name}"
                shutil.copyfile(file, partial)
                partial.replace(kept / file.name)


def cloud_files(value: Any) -> list[str]:
    """Names under which the getters `cloud_file` of an evaluator store what they fetch."""
    if isinstance(value, list):
        return [name for item in value for name in cloud_files(item)]
    if not isinstance(value, dict):
        return []
    if value.get("type") == "cloud_file":
        dest = value.get("dest", [])
        return [dest] if isinstance(dest, str) else list(dest)
    return [name for item in value.values() for name in cloud_files(item)]


def local_uploads(steps: list[dict[str, Any]], checkout: Path, inline: Path) -> list[dict[str, Any]]:
    """Setup steps whose upload_file names a readable local_path.

    Relative paths are of the OSWorld checkout; inline content (ours) becomes a file in `inline`.
    """
    made = []
    for step in steps:
        if step.get("type") != "upload_file":
            made.append(step)
            continue
        files = [_local(item, checkout, inline) for item in step["parameters"]["files"]]
        made.append({**step, "parameters": {"files": files}})
    return made


def _local(item: dict[str, Any], checkout: Path, inline: Path) -> dict[str, Any]:
    if "local_path" in item:
        return {"path": item["path"], "local_path": str(checkout / item["local_path"])}
    import base64

    data = item.get("content_base64")
    content = base64.b64decode(data) if data is not None else str(item["content"]).encode()
    inline.mkdir(parents=True, exist_ok=True)
    file = inline / f"{len(os.listdir(inline))}-{os.path.basename(item['path'])}"
    file.write_bytes(content)
    return {"path": item["path"], "local_path": str(file)}
