"""An S3 server that answers what none would: refused by its bucket's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from django.core.files.storage import storages

from testing.servers.canned_server import CannedServer, canned_server
from testing.servers.s3_server import BUCKET, KEY_ID, SECRET
from webapp.lib.media import bucket_storage
from webapp.lib.media.bucket_address import read_media_storage
from webapp.lib.media.bucket_storage import BucketStorage
from webapp.lib.media.errors import StorageAway, StorageRefused

XML = {"Content-Type": "application/xml"}
BOMB = b"""<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;"><!ENTITY e "&d;&d;&d;&d;&d;&d;">
<!ENTITY f "&e;&e;&e;&e;&e;&e;&e;&e;"><!ENTITY g "&f;&f;&f;&f;&f;&f;&f;&f;"><!ENTITY h "&g;&g;&g;&g;&g;&g;">]>
<ListBucketResult><Contents><Key>&h;&h;&h;&h;</Key></Contents></ListBucketResult>"""
ENTITY = b"""<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>
<ListBucketResult><Contents><Key>desk/hand/&x;</Key><Size>1</Size></Contents></ListBucketResult>"""
LISTED = b"""<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>%b</Key>
<Size>1</Size><LastModified>2026-11-27T00:00:00Z</LastModified></Contents></ListBucketResult>"""


@pytest.fixture
def server() -> Iterator[CannedServer]:
    with canned_server() as made:
        made.headers = dict(XML)
        yield made


@pytest.fixture
def bucket(server: CannedServer, settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[BucketStorage]:
    for name, value in {
        "DESKHAND_STORAGE": f"s3://{BUCKET}/desk/hand",
        "DESKHAND_STORAGE_ENDPOINT": server.url,
        "DESKHAND_STORAGE_KEY_ID": KEY_ID,
        "DESKHAND_SECRET_S3_SECRET_KEY": SECRET,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.0)
    options = read_media_storage().django_storages["default"]["OPTIONS"]
    yield BucketStorage(**options)
    storages.__dict__.pop("backends", None)


READS: dict[str, Callable[[BucketStorage], object]] = {
    "list": lambda bucket: list(bucket.under("a")),
    "time": lambda bucket: bucket.modified("a"),
    "remove": lambda bucket: bucket.remove(["a"]),
}


@pytest.mark.parametrize("body", [b"<", b"\xff", b"<html></html>" * 3, BOMB, ENTITY, LISTED % b"", b"[]"])
@pytest.mark.parametrize("call", READS)
def test_what_is_no_answer_is_refused_or_nothing(server, bucket, call: str, body: bytes) -> None:
    server.otherwise = body
    with suppress(StorageRefused, StorageAway):
        assert not READS[call](bucket)


@pytest.mark.parametrize(
    "key",
    [b"desk/hand/../../../etc/cron.d/x", b"elsewhere/a", b"/etc/x", b"desk/hand//etc/x", b"desk/hand/./x"],
)
def test_no_name_leads_out_of_what_is_ours(server, bucket, key: bytes) -> None:
    """Backups write files by these names, and deletions remove them."""
    server.otherwise = LISTED % key
    with pytest.raises(StorageRefused, match="no name"):
        list(bucket.under())
    server.otherwise = LISTED % b"desk/hand/frames/a.png"
    assert [one.name for one in bucket.under()] == ["frames/a.png"]


def test_an_object_without_end_is_not_read(server, bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_storage, "MOST_BYTES", 1000)
    server.otherwise = b"x" * 1001
    with pytest.raises(StorageRefused, match="more than 1000 bytes"):
        bucket.read("a")
    server.otherwise = b"x" * 1000
    assert len(bucket.read("a")) == 1000


@pytest.mark.parametrize("status", [301, 307, 308])
def test_nothing_signed_is_sent_where_the_server_points(server, bucket, status: int) -> None:
    with canned_server() as elsewhere:
        server.status = status
        server.headers |= {"Location": f"{elsewhere.url}/a", "x-amz-bucket-region": "evil-1"}
        server.otherwise = b"<Error><Code>PermanentRedirect</Code><Endpoint>127.0.0.1</Endpoint></Error>"
        with pytest.raises(StorageRefused):
            bucket.read("a")
        assert elsewhere.asked == []
