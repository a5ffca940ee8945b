"""Screenshots of a joined host that are none: reports that name them are refused, once, with the reason."""

from __future__ import annotations

import hashlib
import json

import pytest

from testing.factories import make_team
from testing.owned_world import Owner, call_table, make_owner
from tests.training.test_untrusted import EPS, png_that_says, written
from tests.webapp.worker_door.test_ownership import post
from webapp.fleet.models import JoinedHost
from webapp.trajectories.models import Frame, TurnRecord

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_client")]


@pytest.fixture
def own() -> Owner:
    return make_owner("ours", make_team())


def send_with(own: Owner, *pictures: bytes) -> tuple[int, dict[str, str]]:
    """Status, and which of the turns that show them were refused."""
    opened, named = call_table(own)["open_turn"], []
    reports = []
    for place, picture in enumerate(pictures, start=1):
        sha256 = hashlib.sha256(picture).hexdigest()
        named.append({"team": own.team.pk, "sha256": sha256, "size": len(picture)})
        seen = {"sha256": sha256, "width": 8, "height": 8}
        body = json.dumps(opened | {"index": place, "observation": seen})
        reports.append({"number": place, "name": "open_turn", "body": body, "trajectory": own.running.pk})
    batch = json.dumps({"stream": "s", "reports": reports, "frames": named}).encode()
    response = post(own, "/hosts/reports/", batch + b"\n" + b"".join(pictures))
    return response.status_code, json.loads(response.content).get("refused", {})


@pytest.mark.parametrize(
    "picture",
    [EPS, written("TIFF"), written("JPEG"), png_that_says(8192, 8192), png_that_says(65535, 65535), b"x"],
)
def test_its_report_is_refused_and_those_beside_it_are_recorded(own, picture):
    status, refused = send_with(own, written("PNG"), picture, written("PNG", 9))
    assert status == 200, "and so the host does not send it again"
    assert list(refused) == ["2"]
    assert refused["2"].startswith("NotAPicture: screenshot")
    assert not Frame.objects.filter(sha256=hashlib.sha256(picture).hexdigest()).exists()
    turns = TurnRecord.objects.filter(trajectory=own.running)
    assert sorted(turns.values_list("index", flat=True)) == [0, 1, 3]
    assert JoinedHost.objects.get().received == 3
    assert JoinedHost.objects.get().num_refused == 1
