"""Routes of joined hosts: all that their port serves."""

from django.urls import path

from webapp.worker_door.joined_hosts import receive

handler400 = handler403 = handler404 = handler500 = receive.no_such_call

urlpatterns = [
    path("hosts/authority.pem", receive.host_authority, name="host-authority"),
    path("hosts/join/", receive.host_join, name="host-join"),
    path("hosts/ask/<str:name>/", receive.host_ask, name="host-ask"),
    path("hosts/reports/", receive.host_reports, name="host-reports"),
]
