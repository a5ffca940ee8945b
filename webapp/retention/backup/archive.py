"""A backup is one tar file:

manifest.json       version, kind of database, time, counts
database.*          one moment of the database
media/...           screenshots, copied after it from folder or bucket: every row's file is there
checkpoints.json    where each checkpoint lies; the weights themselves are copied by other means
secrets.sealed      only with a passphrase
"""

import json
import os
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from webapp import __version__
from webapp.experiments.models import CheckpointRecord
from webapp.lib.media.media_files import MediaFile, media_files, write_media
from webapp.lib.newer_database import applied_migrations, require_known
from webapp.retention.backup.database_copy import NAMES, dump_database, is_empty, load_database
from webapp.retention.backup.sealed_secrets import seal, unseal
from webapp.retention.deletion_lock import deletion_held
from webapp.retention.services.restored_rows import settle_restored_rows

MANIFEST, CHECKPOINTS, SECRETS = "manifest.json", "checkpoints.json", "secrets.sealed"
MEDIA = "media/"


class NothingToBackUp(Exception):
    """Raised when the database has no tables yet; the message says what makes them."""


class CannotRestore(Exception):
    """Raised when nothing was restored; the message says why."""


def write_backup(target: Path, *, passphrase: str = "") -> dict[str, Any]:
    """Write `target` in one piece and return its manifest; everything may go on meanwhile.

    Raises NothingToBackUp, CopyFailed.
    """
    if not applied_migrations():
        raise NothingToBackUp(
            f"the database {connection.settings_dict['NAME']} has no tables, so there is nothing to back up; "
            "is DESKHAND_DATA_DIR or DATABASE_URL the installation's? `make up` starts a new one"
        )
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with deletion_held(), tempfile.TemporaryDirectory(dir=target.parent) as folder:
            database = dump_database(Path(folder))
            with tarfile.open(draft, "w") as archive:
                archive.add(database, database.name)
                num_files = sum(_add_media(archive, file) for file in media_files())
                checkpoints = list(
                    CheckpointRecord.objects.filter(deleted_at=None).values("experiment_id", "step", "path")
                )
                _add_text(archive, CHECKPOINTS, json.dumps(checkpoints, indent=1))
                if passphrase:
                    _add_bytes(archive, SECRETS, seal(settings.SECRETS_DIR, passphrase))
                manifest = {
                    "version": __version__,
                    "database": connection.vendor,
                    "migrations": applied_migrations(),
                    "made_at": timezone.now().isoformat(),
                    "media_files": num_files,
                    "checkpoints": len(checkpoints),
                    "has_secrets": bool(passphrase),
                }
                _add_text(archive, MANIFEST, json.dumps(manifest, indent=1))
        draft.chmod(0o600)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return manifest


def restore_backup(source: Path, *, passphrase: str = "") -> dict[str, Any]:
    """Fill this installation, which has to be empty; returns what became of it.

    Raises CannotRestore, and NewerDatabase for a backup of a newer version; then nothing has changed.
    """
    if not is_empty() or any(media_files()):
        raise CannotRestore(
            "this installation has data already; set DESKHAND_DATA_DIR, DATABASE_URL, DESKHAND_STORAGE anew"
        )
    with tarfile.open(source) as archive:
        manifest = _manifest(archive, source)
        if manifest["database"] != connection.vendor:
            raise CannotRestore(
                f"the backup is of {manifest['database']}, this database is {connection.vendor}"
            )
        require_known(manifest.get("migrations", []), "the backup")
        if manifest["has_secrets"] and passphrase:
            sealed = archive.extractfile(SECRETS)
            assert sealed is not None
            manifest["secrets"] = unseal(sealed.read(), passphrase, settings.SECRETS_DIR)
        with tempfile.TemporaryDirectory(dir=settings.DATA_DIR) as folder:
            name = NAMES[connection.vendor]
            archive.extract(name, folder, filter="data")
            load_database(Path(folder, name))
        for member in _media_of(archive):
            _restore_media(archive, member)
    call_command("migrate", interactive=False, verbosity=0)
    manifest["missing_checkpoints"] = settle_restored_rows()
    return manifest


def _manifest(archive: tarfile.TarFile, source: Path) -> dict[str, Any]:
    try:
        found = archive.extractfile(MANIFEST)
    except KeyError as exc:
        raise CannotRestore(f"{source} is no whole backup: it has no {MANIFEST}") from exc
    assert found is not None
    return json.loads(found.read())


def _add_media(archive: tarfile.TarFile, file: MediaFile) -> int:
    with file.opened() as body:
        entry = tarfile.TarInfo(f"{MEDIA}{file.name}")
        entry.size, entry.mode = body.seek(0, os.SEEK_END), 0o600
        body.seek(0)
        archive.addfile(entry, body)
    return 1


def _media_of(archive: tarfile.TarFile) -> list[tarfile.TarInfo]:
    return [member for member in archive if member.isfile() and member.name.startswith(MEDIA)]


def _restore_media(archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
    body = archive.extractfile(member)
    assert body is not None
    write_media(member.name.removeprefix(MEDIA), body)


def _add_text(archive: tarfile.TarFile, name: str, text: str) -> None:
    _add_bytes(archive, name, text.encode())


def _add_bytes(archive: tarfile.TarFile, name: str, body: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(body), 0o600
    archive.addfile(entry, BytesIO(body))
