"""WebSocket routes."""

from django.urls import URLPattern, path

from webapp.live.consumers import LiveConsumer
from webapp.screens.consumers import ScreenConsumer

websocket_urlpatterns: list[URLPattern] = [
    path("ws/live/", LiveConsumer.as_asgi(), name="live-socket"),
    path("ws/screens/<int:pk>/", ScreenConsumer.as_asgi(), name="screen-socket"),
]
