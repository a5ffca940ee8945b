"""WebSocket routes."""

from django.urls import URLPattern, path

from webapp.live.consumers import LiveConsumer

websocket_urlpatterns: list[URLPattern] = [
    path("ws/live/", LiveConsumer.as_asgi(), name="live-socket"),
]
