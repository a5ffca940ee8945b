"""Writers that publish to the same streams in the agreed order wait for each other and never deadlock."""

import threading

import pytest
from django.db import connection, transaction

from webapp.live.event_publishing import publish
from webapp.live.models import Event


@pytest.mark.django_db(transaction=True)
def test_many_trajectories_reporting_to_one_experiment_lose_nothing():
    num_workers, num_turns = 5, 12
    errors: list[BaseException] = []

    def work(trajectory: int) -> None:
        try:
            for index in range(num_turns):
                with transaction.atomic():
                    publish(f"trajectory.{trajectory}", "turn.added", {"index": index})
                    publish("experiment.1", "turn.added", {"trajectory": trajectory, "index": index})
        except BaseException as error:  # noqa: BLE001
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=[number]) for number in range(num_workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    of_experiment = Event.objects.filter(stream="experiment.1").order_by("seq")
    assert [event.seq for event in of_experiment] == list(range(1, num_workers * num_turns + 1))
    for number in range(num_workers):
        seen = [event.payload["index"] for event in of_experiment if event.payload["trajectory"] == number]
        assert seen == list(range(num_turns))
