"""The installation's bucket and its place of copies, as environment variables name them."""

import re
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from webapp.lib.environment_variables import env_parsed, env_str

BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
PREFIX = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")
COPIES = "copies"
"""Of Django's STORAGES: where checkpoints, exports and logs are copied to (`webapp.lib.copies`)."""
LONGEST_LINK_S = 7 * 86_400
"""What Signature Version 4 allows."""


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """A bucket and the folder in it that is ours."""

    name: str
    prefix: str = ""


def read_bucket(text: str) -> BucketAddress | None:
    """Of "s3://BUCKET" or "s3://BUCKET/PREFIX"; None of "". Raises ValueError that says what is allowed."""
    if not text:
        return None
    parts = urlsplit(text)
    prefix = parts.path.strip("/")
    if parts.scheme != "s3" or not BUCKET_NAME.fullmatch(parts.netloc) or parts.query or parts.fragment:
        raise ValueError(f"{text!r} is no bucket: write s3://BUCKET or s3://BUCKET/PREFIX")
    if prefix and (not PREFIX.fullmatch(prefix) or {".", ".."} & set(prefix.split("/"))):
        raise ValueError(f"{prefix!r} is no prefix: use letters, digits, dots, dashes, and / between folders")
    if find_spec("storages") is None or find_spec("boto3") is None:
        raise ImproperlyConfigured(
            "a bucket is named, and its client is missing: .venv/bin/pip install -r requirements/s3.txt"
        )
    return BucketAddress(parts.netloc, prefix)


def read_origin(text: str) -> str:
    """An address such as https://s3.example.org:9000, without a path. Raises ValueError."""
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/")):
        raise ValueError(f"{text!r} is no address of a server: write https://NAME or https://NAME:PORT")
    if parts.username or parts.query or parts.fragment:
        raise ValueError("only scheme, name and port belong here; credentials are settings of their own")
    return text.rstrip("/")


def read_link_life(text: str) -> int:
    """Seconds that a signed URL lives. Raises ValueError."""
    if not text.isdigit() or not 10 <= int(text) <= LONGEST_LINK_S:
        raise ValueError(f"{text!r}: use a number of seconds from 10 to {LONGEST_LINK_S}")
    return int(text)


@dataclass(frozen=True, slots=True)
class MediaStorage:
    """What the variables say; for the settings."""

    django_storages: dict[str, dict[str, Any]]
    """Rows of Django's STORAGES."""
    image_sources: tuple[str, ...] = ()
    """Other origins than ours that pages show pictures of."""


def read_media_storage() -> MediaStorage:
    """Of DESKHAND_STORAGE, DESKHAND_COPIES and DESKHAND_STORAGE_*; the folder MEDIA_ROOT and no copies
    without. Raises ValueError."""
    bucket = env_parsed("DESKHAND_STORAGE", "", read_bucket)
    copies = env_parsed("DESKHAND_COPIES", "", _read_copies)
    storages = {"default": _storage_of(bucket)} | ({COPIES: copies} if copies else {})
    browsers = env_parsed("DESKHAND_STORAGE_BROWSERS", "", read_origin)
    return MediaStorage(storages, (browsers,) if bucket and browsers else ())


def _read_copies(text: str) -> dict[str, Any] | None:
    """Of a folder's path or a bucket; None of "". Raises ValueError."""
    if text.startswith("/"):
        return _storage_of(None) | {"OPTIONS": {"location": text}}
    return _storage_of(read_bucket(text)) if text else None


def _storage_of(bucket: BucketAddress | None) -> dict[str, Any]:
    """Raises ValueError for another variable that is wrong."""
    if bucket is None:
        return {"BACKEND": "django.core.files.storage.FileSystemStorage"}
    options = {
        "bucket_name": bucket.name,
        "location": bucket.prefix,
        "endpoint_url": env_parsed("DESKHAND_STORAGE_ENDPOINT", "", read_origin) or None,
        "region_name": env_str("DESKHAND_STORAGE_REGION", "us-east-1"),
        "key_id": env_str("DESKHAND_STORAGE_KEY_ID"),
        "browsers": env_parsed("DESKHAND_STORAGE_BROWSERS", "", read_origin),
        "link_s": env_parsed("DESKHAND_STORAGE_LINK_S", "300", read_link_life),
    }
    return {"BACKEND": "webapp.lib.media.bucket_storage.BucketStorage", "OPTIONS": options}
