"""The Celery application of both kinds of workers. Jobs are thin and carry only ids.

Jobs are acknowledged when they start: whether a lost one runs again is decided by the
database (claims, heartbeats), never by Redis' visibility timeout.
"""

import os

import django
from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
# There may be forty of them at a database that takes a hundred connections; their threads wait for one.
os.environ.setdefault("DESKHAND_DB_CONNECTIONS", "2")
# With SQLite nothing is scarce; a connection for each job would cost as much as its queries.
os.environ.setdefault("DESKHAND_DB_KEEP", "1")
django.setup()

from django.conf import settings  # noqa: E402  (settings need django.setup)

app = Celery("deskhand", broker=settings.REDIS_URL)
app.conf.update(
    task_ignore_result=True,
    task_acks_late=False,
    worker_prefetch_multiplier=1,
    task_serializer="json",
    accept_content=["json"],
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    # Never reached by early-acknowledged jobs; far above any experiment in case that changes.
    broker_transport_options={"visibility_timeout": 7 * 24 * 3600},
    worker_hijack_root_logger=False,
    worker_send_task_events=False,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    imports=["workers.jobs", "workers.lifecycle"],
)
