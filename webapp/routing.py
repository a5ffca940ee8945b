"""WebSocket routes."""

from django.urls import URLPattern, path

from webapp.live.consumers import LiveConsumer
from webapp.screens.screen_socket import screen_socket

websocket_urlpatterns: list[URLPattern] = [
    path("ws/live/", LiveConsumer.as_asgi(), name="live-socket"),
    # An ASGI application as well, which is not what `path` is declared to take.
    path("ws/screens/<int:pk>/", screen_socket, name="screen-socket"),  # type: ignore[arg-type]
]
