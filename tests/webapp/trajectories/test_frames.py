"""Frames: stored once, served fast and immutable, to the team that recorded them."""

import hashlib
import threading
from io import BytesIO
from pathlib import Path

import pytest
from django.db import connection
from PIL import Image

from testing.factories import make_frame, make_team, make_user
from testing.first_desk_screens import menu_screen
from webapp.trajectories import frame_views
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.frame_files.names import frame_path
from webapp.trajectories.models import Frame
from webapp.trajectories.screenshot_jpegs import thumb_of
from webapp.trajectories.services import frames
from webapp.trajectories.services.frames import store_frame

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def forgetful():
    """What this process remembers of sessions and frames belongs to other tests' databases."""
    frame_views._teams_of_session.clear()
    frame_views._known_frames.clear()


@pytest.fixture
def team():
    return make_team()


def test_a_frame_is_named_by_the_digest_of_its_png(team):
    sha256 = make_frame(team, 1)
    png = read_frame(sha256)
    assert hashlib.sha256(png).hexdigest() == sha256
    assert frame_path(sha256) == f"frames/{sha256[:2]}/{sha256}.png"
    assert read_frame(sha256, "thumb.jpg")[:2] == b"\xff\xd8"
    with pytest.raises(ValueError, match="not a sha256"):
        frame_path("../../etc/passwd")


def test_a_frame_is_also_kept_as_a_jpeg_and_a_thumbnail_of_320_pixels(team):
    sha256 = store_frame(team, menu_screen(0))
    assert Image.open(BytesIO(read_frame(sha256, "jpg"))).size == (512, 384)
    assert Image.open(BytesIO(read_frame(sha256, "thumb.jpg"))).size == (320, 240)


def test_the_thumbnail_of_a_small_screen_keeps_its_size():
    thumb = thumb_of(Image.new("RGB", (200, 100)))
    assert Image.open(BytesIO(thumb)).size == (200, 100)


def test_files_that_are_there_are_not_made_of_the_picture_again(team, monkeypatch):
    """Decoding one takes milliseconds of the process that serves joined hosts."""
    sha256 = store_frame(team, menu_screen(0))
    monkeypatch.setattr(frames, "loaded", lambda image: pytest.fail("it was decoded again"))
    assert store_frame(other := make_team(), menu_screen(0)) == sha256
    assert Frame.objects.filter(team=other, sha256=sha256).exists()


@pytest.mark.django_db(transaction=True)
def test_storing_at_once_from_many_threads_keeps_one_row_and_whole_files(team, settings):
    png = read_frame(make_frame(make_team(), 7))

    def store() -> None:
        store_frame(team, png)
        connection.close()

    threads = [threading.Thread(target=store) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    frame = Frame.objects.get(team=team)
    assert (frame.width, frame.height) == (512, 384)
    folder = Path(settings.MEDIA_ROOT, frame_path(frame.sha256)).parent
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
    assert read_frame(frame.sha256) == png


def test_a_member_gets_every_variant_immutable_and_a_304_after(client, team):
    sha256 = make_frame(team, 2)
    client.force_login(make_user(team=team))
    for variant, content_type in (("png", "image/png"), ("jpg", "image/jpeg"), ("thumb.jpg", "image/jpeg")):
        response = client.get(f"/frames/{sha256}.{variant}")
        assert response.status_code == 200
        assert response.content == read_frame(sha256, variant)
        assert response["Content-Type"] == content_type
        assert response["Cache-Control"] == "private, max-age=31536000, immutable"
    again = client.get(f"/frames/{sha256}.jpg", headers={"if-none-match": f'"{sha256}.jpg"'})
    assert (again.status_code, again.content) == (304, b"")


def test_others_get_404_even_for_a_frame_that_they_can_name(client, team):
    sha256 = make_frame(team, 3)
    assert client.get(f"/frames/{sha256}.jpg").status_code == 404
    client.force_login(make_user("admin"))
    assert client.get(f"/frames/{sha256}.jpg").status_code == 404
    client.force_login(make_user(None))
    assert client.get(f"/frames/{sha256}.jpg").status_code == 404


def test_the_same_picture_belongs_to_each_team_that_recorded_it(client, team):
    other = make_team()
    assert make_frame(team, 4) == make_frame(other, 4)
    client.force_login(make_user(team=other))
    assert client.get(f"/frames/{make_frame(other, 4)}.jpg").status_code == 200


def test_an_unknown_frame_or_a_lost_file_is_404(client, team, settings):
    sha256 = make_frame(team, 5)
    client.force_login(make_user(team=team))
    assert client.get(f"/frames/{'0' * 64}.jpg").status_code == 404
    assert client.get(f"/frames/{sha256}.gif").status_code == 404
    Path(settings.MEDIA_ROOT, frame_path(sha256, "jpg")).unlink()
    assert client.get(f"/frames/{sha256}.jpg").status_code == 404


def test_a_known_session_and_frame_cost_no_query(client, team, django_assert_num_queries):
    first, second = make_frame(team, 6), make_frame(team, 8)
    client.force_login(make_user(team=team))
    client.get(f"/frames/{first}.jpg")
    with django_assert_num_queries(1):
        client.get(f"/frames/{second}.jpg")
    with django_assert_num_queries(0):
        client.get(f"/frames/{second}.thumb.jpg")


def test_a_removed_member_is_out_when_the_memory_of_the_session_ends(client, team, monkeypatch):
    monkeypatch.setattr(frame_views, "SESSION_TTL_S", 0.0)
    sha256 = make_frame(team, 9)
    user = make_user(team=team)
    client.force_login(user)
    assert client.get(f"/frames/{sha256}.jpg").status_code == 200
    user.memberships.all().delete()
    assert client.get(f"/frames/{sha256}.jpg").status_code == 404


def test_a_new_member_sees_the_pictures_of_the_team_at_once(client, team):
    own, other = make_user(team=team), make_team()
    client.force_login(own)
    assert client.get(f"/frames/{make_frame(team, 10)}.jpg").status_code == 200
    sha256 = make_frame(other, 11)
    assert client.get(f"/frames/{sha256}.jpg").status_code == 404
    own.memberships.create(team=other)
    assert client.get(f"/frames/{sha256}.jpg").status_code == 200


def test_a_screen_that_is_there_is_not_encoded_again(team):
    class Undecodable(Image.Image):
        def convert(self, *_args, **_more):
            raise AssertionError("decoded again")

    sha = make_frame(team, 3)
    png = read_frame(sha)
    assert store_frame(make_team(), png, Undecodable(), sha) == sha
