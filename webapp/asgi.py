"""The web process: HTTP through Django, WebSockets through Channels."""

import os

import django
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
django.setup(set_prefix=False)

# Consumers import models, which need the applications that the line above has loaded.
from django.urls import get_resolver  # noqa: E402

from webapp.body_limit_by_sender import body_limit  # noqa: E402
from webapp.lib.asgi.bodies_in_front import BodiesInFront  # noqa: E402
from webapp.lib.asgi.one_thread_handler import OneThreadHandler  # noqa: E402
from webapp.lib.asgi.websocket_origin import OwnOrigin  # noqa: E402
from webapp.lib.garbage_collection import freeze_startup_objects  # noqa: E402
from webapp.lib.static_files.in_front import StaticFilesInFront  # noqa: E402
from webapp.routing import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": StaticFilesInFront(BodiesInFront(OneThreadHandler(), body_limit)),
        "websocket": OwnOrigin(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)
assert get_resolver().url_patterns, "all views are imported now"
freeze_startup_objects()
