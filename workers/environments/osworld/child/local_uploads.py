"""Files that a task uploads, as files of this machine."""

import os
from pathlib import Path
from typing import Any


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
