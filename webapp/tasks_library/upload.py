"""Files that people upload: one task's JSON, a folder as .zip, Slime's parquet or JSONL -> tasks, bounded.

Nothing of an archive is believed: names stay inside the folder that they are unpacked to, and bytes are
counted while they are read, not by what the archive says of itself.
"""

import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from django.core.files.uploadedfile import UploadedFile

from training.tasks.importers import SLIME_COLUMNS, LoadedTasks, load_tasks
from training.tasks.task_json import LoadError
from training.untrusted.parquet import BadTable, TableTooLarge, read_rows
from webapp.lib.request_values import BadValue, shortened

MIB = 2**20
MAX_UPLOAD = 32 * MIB
MAX_UNPACKED = 128 * MIB
MAX_FILES = 10_000
MAX_DEPTH = 8
"""Folders within folders."""
READ = (".json", ".jsonl", ".parquet")
"""What tasks come in; other files of an archive are passed over."""


def read_upload(file: UploadedFile | None, *, heldout_fraction: float) -> LoadedTasks:
    """The tasks that it holds, with what was refused and why. Raises BadValue for a file of another kind."""
    if file is None:
        raise BadValue("file", "choose a file")
    name = PurePosixPath((file.name or "").replace("\\", "/")).name
    if (file.size or 0) > MAX_UPLOAD:
        raise BadValue("file", f"{name} is larger than {MAX_UPLOAD // MIB} MiB; split it")
    with tempfile.TemporaryDirectory(prefix="deskhand-tasks-") as folder, _named_plainly(folder):
        root = Path(folder) / "upload"
        root.mkdir()
        source = root
        suffix = PurePosixPath(name).suffix.lower()
        if suffix == ".zip":
            _unpack(file, root)
        elif suffix in READ:
            source = root / f"{PurePosixPath(name).stem or 'tasks'}{suffix}"
            with source.open("wb") as copy:
                shutil.copyfileobj(file, copy)
        else:
            raise BadValue("file", f"{shortened(name)} is no .json, .zip, .parquet or .jsonl")
        for parquet in root.rglob("*.parquet"):
            _check_parquet(parquet, root)
        loaded = load_tasks(source, heldout_fraction=heldout_fraction)
        return LoadedTasks(loaded.tasks, [_plain(reason, folder) for reason in loaded.refused])


@contextmanager
def _named_plainly(folder: str) -> Iterator[None]:
    """Refusals name files as the person knows them."""
    try:
        yield
    except LoadError as error:
        raise BadValue("file", _plain(str(error), folder)) from error


def _plain(text: str, folder: str) -> str:
    return text.replace(f"{folder}/upload/", "").replace(f"{folder}/upload", "the file")


def _unpack(file: UploadedFile, root: Path) -> None:
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if len(entries) > MAX_FILES:
                raise BadValue("file", f"more than {MAX_FILES} files in the archive")
            places = [(entry, _place(entry, root)) for entry in entries if not entry.is_dir()]
            left = MAX_UNPACKED
            for entry, place in places:
                if place.suffix.lower() not in READ:
                    continue
                place.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as packed, place.open("xb") as unpacked:
                    left -= _copy(packed, unpacked, left)
    except FileExistsError as error:
        raise BadValue("file", "the archive holds one name twice") from error
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, zlib.error) as error:
        raise BadValue("file", f"not readable as .zip: {shortened(error, 120)}") from error


def _place(entry: zipfile.ZipInfo, root: Path) -> Path:
    """Where it is unpacked to. Raises BadValue for a name that leads elsewhere."""
    shown = shortened(entry.filename, 80)
    path = PurePosixPath(entry.filename.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in entry.filename or not entry.filename.isprintable():
        raise BadValue("file", f"{shown} in the archive leads out of it")
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise BadValue("file", f"{shown} in the archive is a link")
    if entry.flag_bits & 1:
        raise BadValue("file", f"{shown} in the archive needs a password")
    if len(path.parts) > MAX_DEPTH or any(len(part.encode()) > 200 for part in path.parts):
        raise BadValue("file", f"{shown} in the archive is nested too deep, or its name is too long")
    return root.joinpath(*path.parts)


def _copy(packed: IO[bytes], unpacked: IO[bytes], left: int) -> int:
    """Bytes that were copied. Raises BadValue beyond `left`."""
    num = 0
    while chunk := packed.read(MIB):
        num += len(chunk)
        if num > left:
            raise BadValue("file", f"more than {MAX_UNPACKED // MIB} MiB when it is unpacked")
        unpacked.write(chunk)
    return num


def _check_parquet(file: Path, root: Path) -> None:
    """Raise BadValue for a table that is larger than what may be unpacked, or is none."""
    name = file.relative_to(root)
    try:
        read_rows(file, SLIME_COLUMNS, max_bytes=MAX_UNPACKED)
    except TableTooLarge as error:
        raise BadValue("file", f"{name} holds more than {MAX_UNPACKED // MIB} MiB") from error
    except BadTable as error:
        raise BadValue("file", f"{name} is not readable as parquet: {error}") from error
