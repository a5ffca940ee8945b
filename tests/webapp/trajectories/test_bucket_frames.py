"""Screenshots in a bucket of a real S3 server: stored once, shown by signed links, deleted when unused."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client
from PIL import Image

from testing.factories import make_frame, make_group, make_team, make_trajectory, make_user
from testing.first_desk_screens import menu_screen
from testing.servers.s3_server import BUCKET, S3Server, s3_server
from webapp.accounts.models import Team
from webapp.lib import disk_room, outage_retries
from webapp.lib.disk_room import Kept
from webapp.lib.media.bucket_address import read_bucket, read_link_life, read_media_storage, read_origin
from webapp.lib.media.bucket_storage import BucketStorage
from webapp.lib.media.errors import StorageAway, StorageRefused
from webapp.lib.media.media_files import media_files, write_media
from webapp.retention.services import pruning
from webapp.trajectories import frame_views
from webapp.trajectories.frame_files import in_bucket as bucket_frames
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.frame_files.names import frame_path
from webapp.trajectories.services import frames
from webapp.trajectories.services.frames import delete_unused_frames, frame_bytes, store_frame

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def use(server: S3Server, settings: Any, monkeypatch: pytest.MonkeyPatch):
    """Takes the bucket as this installation's storage; with other variables for one test."""

    def take(**variables: str) -> None:
        for name, value in {**server.environment, **variables}.items():
            monkeypatch.setenv(name, value)
        settings.STORAGES = {**settings.STORAGES, "default": read_media_storage().django_storages["default"]}

    return take


@pytest.fixture(autouse=True)
def bucket(server: S3Server, use) -> Path:
    """Its folder below our prefix."""
    frame_views._teams_of_session.clear()
    frame_views._known_frames.clear()
    use()
    return server.folder / "desk" / "hand"


@pytest.fixture
def team() -> Team:
    return make_team()


def fetch(address: str) -> httpx.Response:
    """As a browser would, without a session."""
    return httpx.get(address, timeout=60)


def files_of(bucket: Path, sha: str) -> list[Path]:
    return sorted((bucket / "frames" / sha[:2]).glob(f"{sha}.*"))


@pytest.fixture
def is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored counts as old at once, when it is stored again."""
    monkeypatch.setattr(bucket_frames, "RENEWED_S", 0.0)


def test_a_screenshot_is_three_objects_that_are_written_once(team: Team, bucket: Path) -> None:
    png = menu_screen(1)
    sha = store_frame(team, png)
    files = files_of(bucket, sha)
    assert [file.name.removeprefix(sha) for file in files] == [".jpg", ".png", ".thumb.jpg"]
    assert read_frame(sha) == png
    assert frame_bytes(sha) == sum(file.stat().st_size for file in files)
    written = [file.stat().st_mtime_ns for file in files]
    store_frame(make_team(), png)
    assert [file.stat().st_mtime_ns for file in files] == written
    with pytest.raises(FileNotFoundError):
        read_frame("0" * 64)
    assert frame_bytes("0" * 64) == 0


def test_the_view_gives_the_bytes_where_no_links_are_made(client: Client, team: Team, bucket: Path) -> None:
    sha = make_frame(team, 9)
    assert client.get(f"/frames/{sha}.jpg").status_code == 404
    client.force_login(make_user(team=team))
    response = client.get(f"/frames/{sha}.jpg")
    assert (response.status_code, response.content) == (200, read_frame(sha, "jpg"))
    default_storage.delete(frame_path(sha, "jpg"))
    assert client.get(f"/frames/{sha}.jpg").status_code == 404


def test_links_open_one_object_for_a_while_and_for_members_only(
    client: Client, team: Team, server: S3Server, use
) -> None:
    use(DESKHAND_STORAGE_BROWSERS=server.url)
    sha = store_frame(team, menu_screen(3))
    refused = client.get(f"/frames/{sha}.png")
    assert (refused.status_code, "Location" in refused) == (404, False)
    client.force_login(make_user("admin"))
    assert client.get(f"/frames/{sha}.png").status_code == 404, "another team's admin"
    client.force_login(make_user(team=team))
    answer = client.get(f"/frames/{sha}.png")
    assert (answer.status_code, answer["Cache-Control"]) == (302, "private, max-age=295")
    link = answer["Location"]
    picture = fetch(link)
    assert (picture.status_code, picture.content) == (200, read_frame(sha))
    assert picture.headers["content-type"] == "image/png"
    assert fetch(link.partition("?")[0]).status_code >= 400, "not without the signature"
    other = store_frame(team, menu_screen(4))
    assert fetch(link.replace(sha, other)).status_code == 403, "no other object"
    lasts = re.search(r"X-Amz-Expires=\d+", link)
    assert lasts
    for forged in (
        link.replace(lasts[0], "X-Amz-Expires=604800"),
        link.replace("image%2Fpng", "text%2Fhtml"),
        link.replace("X-Amz-Signature=", "X-Amz-Signature=0"),
    ):
        assert forged != link
        assert fetch(forged).status_code == 403, forged
    assert httpx.put(link, content=b"x", trust_env=False).status_code == 403, "read only"


def test_a_link_ends(team: Team, use, server: S3Server, settings: Any) -> None:
    use(DESKHAND_STORAGE_BROWSERS=server.url)
    settings.STORAGES["default"]["OPTIONS"]["link_s"] = 1
    settings.STORAGES = dict(settings.STORAGES)
    link, lives_s = frames.frame_link(store_frame(team, menu_screen(3)), "jpg") or ("", 0)
    time.sleep(2.1)
    assert (fetch(link).status_code >= 400, lives_s) == (True, 1)


def test_pages_of_first_desk_show_their_screens_from_the_bucket(
    client: Client, team: Team, server: S3Server, use
) -> None:
    use(DESKHAND_STORAGE_BROWSERS=server.url)
    group = make_group(team=team, size=2)
    trajectories = [make_trajectory(group=group, member=member, turns=3) for member in range(2)]
    for trajectory in trajectories:
        for index, turn in enumerate(trajectory.turns.order_by("index")):
            turn.frame = store_frame(team, menu_screen(index))
            turn.save()
        trajectory.last_frame = trajectory.final_frame = trajectory.thumbnail = turn.frame
        trajectory.save()
    client.force_login(make_user(team=team))
    pages = ["/trajectories/", f"/trajectories/{trajectories[0].pk}/", f"/groups/{group.pk}/"]
    shown = set()
    for page in pages:
        found = re.findall(r'src="(/frames/[^"]+)"', client.get(page).content.decode())
        assert found, page
        shown.update(found)
    for address in shown:
        picture = fetch(client.get(address)["Location"])
        assert picture.status_code == 200, (address, picture.text)
        assert Image.open(BytesIO(picture.content)).width > 0, address


# --- deleting ----------------------------------------------------------------------------------------


def test_unused_ones_go_and_those_stored_again_lately_stay(team: Team, bucket: Path, is_old: None) -> None:
    gone, again = (store_frame(team, menu_screen(number)) for number in (5, 6))
    since = time.time()
    time.sleep(1.1)  # S3 tells whole seconds
    store_frame(team, menu_screen(6))
    young = store_frame(team, menu_screen(7))
    assert delete_unused_frames([gone, again, young], since) == [gone]
    assert files_of(bucket, gone) == []
    assert len(files_of(bucket, again)) == len(files_of(bucket, young)) == 3
    assert [file for file in (bucket / "passing").rglob("*") if file.is_file()] == [], "no note is left"
    assert delete_unused_frames([gone], since) == [gone], "again, after a crash between files and rows"


def test_storing_again_renews_in_time_for_retention() -> None:
    assert bucket_frames.RENEWED_S < pruning.UNUSED_S
    assert bucket_frames.DELETES_WITHIN_S < bucket_frames.NOTE_LASTS_S


@pytest.mark.parametrize("heeds_notes", [True, False])
def test_one_that_is_stored_while_it_is_deleted_is_whole(
    team: Team, bucket: Path, is_old: None, monkeypatch: pytest.MonkeyPatch, heeds_notes: bool
) -> None:
    """The worst moment: the deletion has looked, then it is stored, then it is deleted."""
    png = menu_screen(4)
    sha = store_frame(team, png)
    has_written, has_deleted = threading.Event(), threading.Event()
    stays, remove = bucket_frames.BucketFrames._stays, BucketStorage.remove

    def look(self: bucket_frames.BucketFrames, name: str) -> bool:
        is_safe = stays(self, name) or not heeds_notes
        has_written.set()
        assert has_deleted.wait(20)
        return is_safe

    image = Image.open(BytesIO(png)).convert("RGB")
    writer = threading.Thread(target=lambda: frames.write_files(png, image, sha), daemon=True)

    def remove_later(self: BucketStorage, names: Iterable[str]) -> None:
        if writer.ident is None:
            writer.start()
            assert has_written.wait(20)
        remove(self, names)

    monkeypatch.setattr(bucket_frames.BucketFrames, "_stays", look)
    monkeypatch.setattr(BucketStorage, "remove", remove_later)
    delete_unused_frames([sha], time.time() + 60)
    has_deleted.set()
    writer.join(20)
    assert not writer.is_alive()
    assert len(files_of(bucket, sha)) == (3 if heeds_notes else 0), "without the note it would be lost"


def test_the_note_of_a_deletion_that_died_holds_no_writer_up(
    team: Team, bucket: Path, is_old: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = store_frame(team, menu_screen(2))
    written = files_of(bucket, sha)[0].stat().st_mtime_ns
    note = f"{bucket_frames.NOTES}dead"
    default_storage.save(note, ContentFile(b""))
    monkeypatch.setattr(bucket_frames, "NOTE_LASTS_S", -5.0)
    store_frame(team, menu_screen(2))
    assert files_of(bucket, sha)[0].stat().st_mtime_ns > written
    assert note not in [file.name for file in media_files()], "it is no file of the installation's"
    default_storage.delete(note)


# --- other files, outages ----------------------------------------------------------------------------


def test_a_backup_s_files_go_into_a_folder_and_back(
    team: Team, bucket: Path, settings: Any, tmp_path: Path, use
) -> None:
    sha = store_frame(team, menu_screen(1))
    default_storage.save("reports/7/picture.jpg", ContentFile(b"jpeg"))
    kept = {}
    for file in media_files():
        with file.opened() as body:
            kept[file.name] = body.read()
    assert {frame_path(sha), "reports/7/picture.jpg"} <= set(kept)
    settings.MEDIA_ROOT = tmp_path
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    }
    for name, content in kept.items():
        write_media(name, BytesIO(content))
    assert read_frame(sha) == menu_screen(1)
    assert (tmp_path / "reports/7/picture.jpg").stat().st_mode & 0o777 == 0o600
    assert {file.name for file in media_files()} == set(kept)
    use()
    default_storage.delete("reports/7/picture.jpg")
    with pytest.raises(FileNotFoundError), default_storage.open("reports/7/picture.jpg"):
        pass
    write_media("reports/7/picture.jpg", BytesIO(kept["reports/7/picture.jpg"]))
    with default_storage.open("reports/7/picture.jpg") as again:
        assert again.read() == b"jpeg"


def test_a_server_that_is_away_is_waited_for_and_said_so(client: Client, team: Team, use) -> None:
    sha = store_frame(team, menu_screen(1))
    use(DESKHAND_STORAGE_ENDPOINT="http://127.0.0.1:9")
    with pytest.raises(StorageAway, match=f"s3://{BUCKET} does not answer") as away:
        store_frame(team, menu_screen(8))
    assert outage_retries.passes(away.value)
    client.force_login(make_user(team=team))
    client.raise_request_exception = False
    answer = client.get(f"/frames/{sha}.jpg")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert disk_room.folders_of(Kept.FRAMES) == []


def test_a_wrong_key_is_no_outage(team: Team, use) -> None:
    use(DESKHAND_SECRET_S3_SECRET_KEY="another")
    with pytest.raises(StorageRefused, match="DESKHAND_STORAGE") as refused:
        store_frame(team, menu_screen(8))
    assert not outage_retries.passes(refused.value)


@pytest.mark.parametrize(
    ("read", "text", "problem"),
    [
        (read_bucket, "screens", "write s3://BUCKET"),
        (read_bucket, "s3://Screens", "write s3://BUCKET"),
        (read_bucket, "s3://screens/../x", "is no prefix"),
        (read_origin, "s3.example.org", "write https://NAME"),
        (read_origin, "https://me:secret@s3.example.org", "credentials are settings"),
        (read_link_life, "5", "from 10 to 604800"),
        (read_link_life, "5 min", "from 10 to 604800"),
    ],
)
def test_what_is_no_bucket_address_or_time_is_refused(read, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read(text)
