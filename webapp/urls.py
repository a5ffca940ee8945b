"""HTTP routes. Each application has its own `urls.py`; names are `noun-verb` and belong to no namespace."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path, re_path

from webapp.api.urls import routes as api_routes
from webapp.trajectories.frame_views import show_frame

handler400 = "webapp.lib.error_pages.bad_request"
handler403 = "webapp.lib.error_pages.permission_denied"
handler404 = "webapp.lib.error_pages.page_not_found"
handler500 = "webapp.lib.error_pages.server_error"

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", api_routes),
    path("", include("webapp.operations.urls")),
    path("", include("webapp.home.urls")),
    path("", include("webapp.accounts.urls")),
    path("", include("webapp.experiment_pages.urls")),
    path("", include("webapp.launch.urls")),
    path("", include("webapp.sweeps.urls")),
    path("", include("webapp.analysis.urls")),
    path("", include("webapp.checkpoints.urls")),
    path("", include("webapp.worker_door.urls")),
    # Without a port of its own, a proxy that ends TLS brings joined hosts here.
    *([path("", include("webapp.worker_door.joined_hosts.urls"))] if settings.HOSTS_SERVER.is_local else []),
    path("", include("webapp.fleet.urls")),
    path("", include("webapp.trajectories.urls")),
    path("", include("webapp.replay.urls")),
    path("", include("webapp.rewards_lab.urls")),
    path("", include("webapp.scanners.urls")),
    path("", include("webapp.tasks_library.urls")),
    path("", include("webapp.attacks.urls")),
    path("", include("webapp.screens.urls")),
    path("", include("webapp.reports.urls")),
    path("", include("webapp.retention.urls")),
    path("", include("webapp.notifications.urls")),
    path("", include("webapp.samples.urls")),
    path("", include("webapp.help.urls")),
    re_path(
        r"^frames/(?P<sha256>[0-9a-f]{64})\.(?P<variant>png|jpg|thumb\.jpg)$", show_frame, name="frame-show"
    ),
]
