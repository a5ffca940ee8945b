"""A bucket of an S3 server as Django's storage, with one request per call for what is asked often.

django-storages asks twice or more for what one request tells, and opens connections per thread. Its methods
serve the rest of the installation's files; names are those of the storage, the prefix is added here.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import boto3
from boto3.exceptions import Boto3Error
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    HTTPClientError,
    IncompleteReadError,
    SSLError,
)
from django.conf import settings
from storages.backends.s3 import S3Storage

from training.outgoing.secret_store import read_secret
from webapp.lib.media.errors import StorageAway, StorageRefused

SECRET = "s3-secret-key"
MISSING = {"404", "NoSuchKey"}
BUSY = {"SlowDown", "RequestTimeout", "Throttling", "ThrottlingException", "RequestTimeTooSkewed"}
MOST_BYTES = 256 << 20
"""Of an object that is read into memory."""
MOST_AT_ONCE = 1000
"""Keys that one request may delete."""
MALFORMED = (KeyError, TypeError, AttributeError, ValueError)
"""What an answer without its parts ends as in the client."""
IMMUTABLE = "private, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """What a listing tells of one object."""

    name: str
    num_bytes: int
    modified: float
    """Seconds of the server's wall clock."""


class BucketStorage(S3Storage):
    """See the module. Raises FileNotFoundError, StorageAway and StorageRefused, as its own methods say."""

    def __init__(self, *, key_id: str, browsers: str, link_s: int, **options: Any) -> None:
        self.browsers = browsers
        self.link_s = link_s
        credentials = {}
        if key_id:
            credentials = {
                "access_key": key_id,
                "secret_key": read_secret(SECRET, settings.SECRETS_DIR),
            }
        super().__init__(
            **options,
            **credentials,
            client_config=_config(has_endpoint=bool(options.get("endpoint_url"))),
            file_overwrite=False,
            default_acl=None,
        )

    @cached_property
    def client(self) -> Any:
        """Shared by all threads."""
        return self._client(self.endpoint_url)

    @cached_property
    def signer(self) -> Any:
        """Knows the server by the address that browsers use, which is part of what is signed."""
        return self._client(self.browsers)

    def put(self, name: str, body: bytes | IO[bytes], content_type: str = "application/octet-stream") -> None:
        """Write an object in one piece, over one that is there."""
        with self._told(name):
            self.client.put_object(**self._key(name), Body=body, ContentType=content_type)

    def read(self, name: str) -> bytes:
        """The whole object. Raises FileNotFoundError."""
        with self._told(name):
            body = bytes(self.client.get_object(**self._key(name))["Body"].read(MOST_BYTES + 1))
        if len(body) > MOST_BYTES:
            raise StorageRefused(f"s3://{self.bucket_name}: {name} has more than {MOST_BYTES} bytes")
        return body

    def upload(self, name: str, path: Path) -> None:
        """Write a file of any size as an object, in parts."""
        with self._told(name):
            self.client.upload_file(str(path), *self._key(name).values())

    def download(self, name: str, path: Path) -> None:
        """Write an object into a file. Raises FileNotFoundError."""
        with self._told(name):
            self.client.download_file(*self._key(name).values(), str(path))

    @contextmanager
    def opened(self, name: str) -> Iterator[IO[bytes]]:
        """Read an object piece by piece. Raises FileNotFoundError."""
        with self._told(name), closing(self.client.get_object(**self._key(name))["Body"]) as body:
            yield body

    def modified(self, name: str) -> float | None:
        """When it was written last, in seconds of the server's wall clock; None when it is not there."""
        try:
            with self._told(name):
                return float(self.client.head_object(**self._key(name))["LastModified"].timestamp())
        except FileNotFoundError:
            return None

    def under(self, prefix: str = "") -> Iterator[StoredObject]:
        """All objects whose names begin so, in the order of their names."""
        pages = self.client.get_paginator("list_objects_v2")
        start = self._key(prefix)
        with self._told(prefix):
            for page in pages.paginate(Bucket=start["Bucket"], Prefix=start["Key"]):
                for one in page.get("Contents", []):
                    if one["Key"].endswith("/"):  # a folder's mark
                        continue
                    name = self._name_of(one["Key"])
                    yield StoredObject(name, one["Size"], one["LastModified"].timestamp())

    def _name_of(self, key: str) -> str:
        """Of an object that the server lists. Raises StorageRefused for one that is not ours."""
        name = key.removeprefix(self._root)
        if not key.startswith(self._root) or not {"", ".", ".."}.isdisjoint(name.split("/")):
            raise StorageRefused(f"s3://{self.bucket_name} lists {key[:200]!r}, which is no name of ours")
        return name

    def remove(self, names: Iterable[str]) -> None:
        """Delete objects, a thousand with each request; one that is not there is no error."""
        keys = [{"Key": self._key(name)["Key"]} for name in names]
        for first in range(0, len(keys), MOST_AT_ONCE):
            some = keys[first : first + MOST_AT_ONCE]
            with self._told(some[0]["Key"]):
                wanted = {"Objects": some, "Quiet": True}
                answer = self.client.delete_objects(Bucket=self.bucket_name, Delete=wanted)
            if errors := answer.get("Errors"):
                raise StorageRefused(f"{errors[0]['Key']} was not deleted: {errors[0].get('Message', '')}")

    def link(self, name: str, content_type: str) -> str:
        """A URL that opens the object for `link_s` seconds without a sign-in; "" when links are not made."""
        if not self.browsers:
            return ""
        shown = {"ResponseContentType": content_type, "ResponseCacheControl": IMMUTABLE}
        wanted = {**self._key(name), **shown}
        return str(self.signer.generate_presigned_url("get_object", Params=wanted, ExpiresIn=self.link_s))

    def exists(self, name: str) -> bool:
        return self.modified(name) is not None

    def delete(self, name: str) -> None:
        self.remove([name])

    def _open(self, name: str, mode: str = "rb") -> Any:
        with self._told(name):
            return super()._open(name, mode)

    def _save(self, name: str, content: Any) -> str:
        with self._told(name):
            return str(super()._save(name, content))

    @property
    def _root(self) -> str:
        return f"{self.location}/" if self.location else ""

    def _key(self, name: str) -> dict[str, str]:
        return {"Bucket": self.bucket_name, "Key": f"{self._root}{name}"}

    def _client(self, endpoint: str | None) -> Any:
        session: boto3.session.Session = self._create_session()
        return session.client(
            "s3",
            region_name=self.region_name,
            endpoint_url=endpoint or None,
            config=_config(has_endpoint=bool(endpoint)),
            verify=self.verify,
        )

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        """Errors of the client as ours."""
        bucket = f"s3://{self.bucket_name}"
        try:
            yield
        except ClientError as error:
            code, status = _code(error)
            if code in MISSING:
                raise FileNotFoundError(f"{bucket} has no {name}") from error
            if status >= 500 or status == 429 or code in BUSY:
                raise StorageAway(f"{bucket} answers {status} {code}") from error
            raise StorageRefused(f"{bucket} refuses {name}: {error} (see DESKHAND_STORAGE)") from error
        except SSLError as error:
            raise StorageRefused(f"{bucket}: {error} (AWS_CA_BUNDLE names an authority)") from error
        except (ConnectionError, HTTPClientError, IncompleteReadError) as error:
            raise StorageAway(f"{bucket} does not answer: {error}") from error
        except (BotoCoreError, Boto3Error, *MALFORMED) as error:
            raise StorageRefused(f"{bucket}: {error}") from error


def _config(*, has_endpoint: bool) -> Config:
    """Checksums only where they are asked for: many servers do not know those that boto3 adds by itself."""
    return Config(
        signature_version="s3v4",
        s3={"addressing_style": "path" if has_endpoint else "auto"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        connect_timeout=5,
        read_timeout=30,
        retries={"mode": "standard", "max_attempts": 3},
        max_pool_connections=64,
    )


def _code(error: ClientError) -> tuple[str, int]:
    answer: dict[str, Any] = dict(error.response)
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return str(answer.get("Error", {}).get("Code", "")), int(status)
