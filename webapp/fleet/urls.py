"""Routes of the fleet pages."""

from django.urls import path, re_path

from webapp.fleet import action_views, views
from webapp.fleet.services.operations import DESKTOP_VERBS

VERB = "|".join(DESKTOP_VERBS)

urlpatterns = [
    path("fleet/", views.fleet, name="fleet-show"),
    path("fleet/parts/", views.fleet_parts, name="fleet-parts"),
    path("fleet/history/", views.fleet_history, name="fleet-history"),
    path("fleet/failures/<int:pk>/screen/", views.boot_failure_screen, name="boot-failure-screen"),
    path("fleet/workers/<int:pk>/drain/", action_views.worker_drain, name="worker-drain"),
    path("fleet/hosts/<int:pk>/drain/", action_views.host_drain, name="host-drain"),
    path("fleet/desktops/<str:name>/", views.desktop, name="fleet-desktop"),
    path("fleet/desktops/<str:name>/part/", views.desktop_part, name="fleet-desktop-part"),
    re_path(
        rf"^fleet/desktops/(?P<name>[^/]+)/(?P<verb>{VERB})/$",
        action_views.desktop_operate,
        name="desktop-operate",
    ),
]
