"""Screenshots in a bucket. Its server has no rename and no condition on time, so deleting leaves a note:

    delete: note -> look when each PNG was written -> delete JPEGs, then PNGs -> take the note away
    store:  look -> written lately: done
                 -> absent: write, the PNG last; who deletes is done with it, for the PNG goes last
                 -> old: write anew; go on when then no note is there and the PNG is, else once more

A deletion whose note came after the rewriting sees the new time; one whose note was gone before had ended,
and what it deleted is seen missing. That holds for a server that shows what was written at once, as S3 does.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from webapp.lib.media.media_files import PASSING
from webapp.trajectories.frame_files.contract import FileNames, FrameFile

if TYPE_CHECKING:
    from webapp.lib.media.bucket_storage import BucketStorage

log = logging.getLogger(__name__)
RENEWED_S = 1800.0
"""Written longer ago, files are written anew: well within what `delete_unused` is asked to let be."""
NOTES = f"{PASSING}deletions/"
NOTE_LASTS_S = 300.0
"""An older note was left by a process that died."""
DELETES_WITHIN_S = 120.0
"""Of its note; then it gives up. A request with its repetitions ends before the note is old."""
LOOK_AGAIN_S = 0.2
_THREADS = ThreadPoolExecutor(16, thread_name_prefix="bucket")


class BucketFrames:
    """See FrameFiles."""

    def __init__(self, bucket: BucketStorage) -> None:
        self._bucket = bucket

    def keep(self, names: FileNames, made: Callable[[], Sequence[FrameFile]]) -> None:
        modified = self._bucket.modified(names[-1])
        if modified is not None and time.time() - modified < RENEWED_S:
            return
        files = made()
        self._write(files)
        while modified is not None and not self._stays(names[-1]):
            time.sleep(LOOK_AGAIN_S)
            self._write(files)

    def read(self, name: str) -> bytes:
        return self._bucket.read(name)

    def num_bytes(self, names: FileNames) -> int:
        start = names[-1].removesuffix("png")
        return sum(one.num_bytes for one in self._bucket.under(start) if one.name in names)

    def delete_unused(self, frames: Sequence[FileNames], unused_since: float) -> list[FileNames]:
        if not frames:
            return []
        note, noted = f"{NOTES}{uuid.uuid4().hex}", time.monotonic()
        self._bucket.put(note, b"")
        try:
            times = list(_THREADS.map(self._bucket.modified, [names[-1] for names in frames]))
            unused = [
                names
                for names, modified in zip(frames, times, strict=True)
                if modified is None or modified <= unused_since
            ]
            if time.monotonic() - noted > DELETES_WITHIN_S:
                log.warning("deleting %d screenshots is given up: the bucket is slow", len(unused))
                return []
            self._bucket.remove(name for names in unused for name in names[:-1])
            if time.monotonic() - noted > DELETES_WITHIN_S:
                log.warning("the PNGs of %d screenshots go next time: the bucket is slow", len(unused))
                return []
            self._bucket.remove(names[-1] for names in unused)
        finally:
            self._bucket.remove([note])
        return unused

    def link(self, name: str, content_type: str) -> tuple[str, int] | None:
        link = self._bucket.link(name, content_type)
        return (link, self._bucket.link_s) if link else None

    def _write(self, files: Sequence[FrameFile]) -> None:
        *others, png = files
        list(_THREADS.map(self._put, others))
        self._put(png)

    def _put(self, file: FrameFile) -> None:
        self._bucket.put(file.name, file.body, file.content_type)

    def _stays(self, png: str) -> bool:
        limit = time.time() - NOTE_LASTS_S
        if any(note.modified > limit for note in self._bucket.under(NOTES)):
            return False
        return self._bucket.modified(png) is not None
