"""Screenshots in the folder MEDIA_ROOT of this host. A file appears under its name only when complete."""

import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from django.core.files.storage import default_storage

from webapp.trajectories.frame_files.contract import FileNames, FrameFile


class FolderFrames:
    """See FrameFiles."""

    def keep(self, names: FileNames, made: Callable[[], Sequence[FrameFile]]) -> None:
        try:
            os.utime(_path(names[-1]))
        except FileNotFoundError:
            for file in made():
                _write_once(_path(file.name), file.body)

    def read(self, name: str) -> bytes:
        return _path(name).read_bytes()

    def num_bytes(self, names: FileNames) -> int:
        paths = [_path(name) for name in names]
        return sum(path.stat().st_size for path in paths if path.exists())

    def delete_unused(self, frames: Sequence[FileNames], unused_since: float) -> list[FileNames]:
        return [names for names in frames if _delete_unused(names, unused_since)]

    def link(self, name: str, content_type: str) -> tuple[str, int] | None:
        return None


def _path(name: str) -> Path:
    return Path(default_storage.path(name))


def _write_once(path: Path, body: bytes) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        draft.write_bytes(body)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _delete_unused(names: FileNames, unused_since: float) -> bool:
    """The PNG is what `keep` looks at: it is put aside first and looked at once more, so that a screenshot
    that is stored in the same moment is either put back or written anew."""
    *others, last = names
    png = _path(last)
    aside = png.with_name(f".{png.name}.unused")
    try:
        if png.stat().st_mtime > unused_since:
            return False
        png.rename(aside)
        if aside.stat().st_mtime > unused_since:
            aside.rename(png)
            return False
    except FileNotFoundError:
        pass
    for name in others:
        default_storage.delete(name)
    aside.unlink(missing_ok=True)
    return True
