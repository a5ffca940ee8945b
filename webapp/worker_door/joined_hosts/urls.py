"""Routes of joined hosts: all that their port serves."""

from django.urls import path

from webapp.worker_door.joined_hosts import receive, views

handler400 = handler403 = handler404 = handler500 = views.no_such_call

urlpatterns = [
    path("hosts/authority.pem", views.host_authority, name="host-authority"),
    path("hosts/join/", views.host_join, name="host-join"),
    path("hosts/ask/<str:name>/", views.host_ask, name="host-ask"),
    path("hosts/reports/", receive.host_reports, name="host-reports"),
]
