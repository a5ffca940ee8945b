"""Send jobs by name: the web application never imports the workers."""

from collections.abc import Callable
from functools import cache

from celery import Celery
from django.conf import settings

RUN_EXPERIMENT = "workers.jobs.run_experiment"
JOIN_GANG = "workers.jobs.join_gang"
RUN_TRAJECTORY = "workers.jobs.run_trajectory"
PING = "workers.jobs.ping"

QUEUE_OF_JOB = {RUN_EXPERIMENT: "gpu", JOIN_GANG: "gpu", RUN_TRAJECTORY: "env"}


@cache
def _producer() -> Celery:
    app = Celery("deskhand-producer", broker=settings.REDIS_URL)
    # A sender must not hang a page or the dispatcher when Redis is away: the row stays in the
    # database, which is the queue of record, and is sent again later.
    app.conf.broker_transport_options = {"socket_timeout": 5, "socket_connect_timeout": 2}
    app.conf.broker_connection_retry_on_startup = False
    return app


def send_job(name: str, *args: int, only: str = "") -> None:
    """Put one thin job on its queue, or on that of one machine's workers or of one worker.

    Raises `kombu.exceptions.OperationalError` when Redis is away.
    """
    queue = own_queue(QUEUE_OF_JOB[name], only) if only else QUEUE_OF_JOB[name]
    _producer().send_task(name, args=args, queue=queue, ignore_result=True, retry=False)


def take_jobs(
    name: str, *, host: str, count: int, is_for_it: Callable[[int], bool] | None = None
) -> list[int]:
    """Take up to `count` jobs that wait for the workers of `host`, or for any; their first arguments.

    `is_for_it`: which of them the host may take; the others stay.
    Raises `kombu.exceptions.OperationalError` when Redis is away.
    """
    queue = QUEUE_OF_JOB[name]
    taken: list[int] = []
    others = []  # jobs of another name, or not for this host: other workers do them
    with _producer().connection_or_acquire() as connection:  # a new one would take longer than the rest
        for place in (own_queue(queue, host), queue):
            with connection.SimpleQueue(place) as waiting:
                while len(taken) < count:
                    try:
                        message = waiting.get_nowait()
                    except waiting.Empty:
                        break
                    is_ours = message.headers.get("task") == name
                    if not is_ours or (is_for_it and not is_for_it(int(message.payload[0][0]))):
                        others.append(message)
                        continue
                    message.ack()
                    taken.append(int(message.payload[0][0]))
        for message in others:
            message.requeue()
    return taken


def take_placed(worker: str) -> tuple[str, tuple[int, int]] | None:
    """Take the oldest job that waits for one gpu worker: its name and arguments; None when none does.

    Raises `kombu.exceptions.OperationalError` when Redis is away.
    """
    with (
        _producer().connection_or_acquire() as connection,
        connection.SimpleQueue(own_queue("gpu", worker)) as waiting,
    ):
        try:
            message = waiting.get_nowait()
        except waiting.Empty:
            return None
        message.ack()
        first, second = message.payload[0]
        return message.headers["task"], (int(first), int(second))


def own_queue(queue: str, name: str) -> str:
    """The queue that only the workers of one machine, or one worker, take jobs from beside the common one."""
    return f"{queue}@{name}"
