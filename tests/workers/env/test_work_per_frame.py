"""What a frame costs on its way from a desktop to the record: it is decoded never, and hashed once."""

import hashlib
from collections import Counter
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from django.db import transaction
from PIL import Image

from testing.factories import make_experiment
from testing.watch_installation import wait_for
from training.content.task_sets.first_desk import generate
from training.contracts.types import Purpose, Source
from webapp.experiments.models import TaskRecord
from webapp.experiments.services.task_sets import import_task_set
from webapp.live.broadcast import _channel, picture_group
from webapp.trajectories.models import Group
from webapp.trajectories.services.announcements import stream_of
from webapp.trajectories.services.groups import GroupSpec, create_group

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.desktop]

NOTE = next(task for task in generate() if task.family == "note")
PNG = b"\x89PNG"


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a PNG was decoded and hashed, in all threads."""
    counts: Counter[str] = Counter()

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            data = (
                given[0].getvalue() if given and isinstance(given[0], BytesIO) else given[0] if given else b""
            )
            counts[name] += bytes(data[:4]) == PNG
            return function(*given, **named)

        return call

    monkeypatch.setattr(Image, "open", counted("decoded", Image.open))
    monkeypatch.setattr(hashlib, "sha256", counted("hashed", hashlib.sha256))
    return counts


def test_a_frame_is_never_decoded_and_is_hashed_once_while_it_is_watched(
    transactional_db, redis_client, work, env_thread
):
    import_task_set(name="first-desk", origin="test", tasks=[NOTE])
    experiment = make_experiment(config={"desktops": {"provider": "x11", "num_desktops": 1}})
    task = TaskRecord.objects.get(task_id=NOTE.task_id)
    request = GroupSpec(task=task, size=1, purpose=Purpose.VERIFICATION, source=Source.ORACLE)
    with redis_client.pubsub() as viewer:
        with transaction.atomic():  # it is watched before it begins
            group = create_group(request=request, team_id=experiment.team_id, experiment=experiment)
            (row,) = group.trajectories.all()
            viewer.subscribe(_channel(picture_group(stream_of(row.pk))))
            assert viewer.get_message(timeout=10)["type"] == "subscribe"
        wait_for("the end", lambda: Group.objects.get(pk=group.pk).finished_at, patience_s=120)
        assert viewer.get_message(timeout=10)["type"] == "message", "its pictures are sent"
    row.refresh_from_db()
    assert (row.status, row.score) == ("terminated", 1.0)
    screens = {*row.turns.values_list("frame", flat=True), row.final_frame}
    assert len(screens) > 2
    assert work["decoded"] == 0
    assert work["hashed"] == len(screens)
