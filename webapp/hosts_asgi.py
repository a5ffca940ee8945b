"""The port for hosts that join: the worker door over TLS, and no page, no API, no sign-in."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
django.setup(set_prefix=False)

# These import models, which need the applications that the line above has loaded.
from django.urls import get_resolver  # noqa: E402

from webapp.body_limit_by_sender import body_limit  # noqa: E402
from webapp.lib.asgi.bodies_in_front import BodiesInFront  # noqa: E402
from webapp.lib.asgi.one_thread_handler import OneThreadHandler  # noqa: E402
from webapp.lib.garbage_collection import freeze_startup_objects  # noqa: E402

ROUTES = "webapp.worker_door.joined_hosts.urls"
application = BodiesInFront(OneThreadHandler(ROUTES), body_limit)
assert get_resolver(ROUTES).url_patterns, "all views are imported now"
freeze_startup_objects()
