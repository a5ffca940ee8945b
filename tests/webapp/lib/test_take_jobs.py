"""Jobs that the web takes from Redis for a host that does not reach it."""

import pytest

from webapp.lib.send_job import PING, RUN_TRAJECTORY, _producer, send_job, take_jobs


@pytest.fixture(autouse=True)
def _empty_queues(redis_client):
    redis_client.delete("env", "env@far")
    yield
    redis_client.delete("env", "env@far")


def test_its_own_queue_comes_first_and_no_job_is_taken_twice(redis_client):
    for number in (1, 2, 3):
        send_job(RUN_TRAJECTORY, number)
    send_job(RUN_TRAJECTORY, 9, only="far")
    send_job(RUN_TRAJECTORY, 8, only="near")
    assert take_jobs(RUN_TRAJECTORY, host="far", count=3) == [9, 1, 2]
    assert take_jobs(RUN_TRAJECTORY, host="far", count=3) == [3]
    assert take_jobs(RUN_TRAJECTORY, host="far", count=3) == []
    assert take_jobs(RUN_TRAJECTORY, host="near", count=3) == [8]


def test_what_is_no_trajectory_stays_for_the_workers_of_this_machine(redis_client):
    _producer().send_task(PING, args=["x"], queue="env", ignore_result=True, retry=False)
    send_job(RUN_TRAJECTORY, 1)
    assert take_jobs(RUN_TRAJECTORY, host="far", count=2) == [1]
    assert redis_client.llen("env") == 1
