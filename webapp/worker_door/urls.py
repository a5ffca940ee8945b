"""Routes of joined hosts, and of the people who let them join."""

from django.urls import path

from webapp.worker_door import pages, views

urlpatterns = [
    path("hosts/authority.pem", views.host_authority, name="host-authority"),
    path("hosts/join/", views.host_join, name="host-join"),
    path("hosts/ask/<str:name>/", views.host_ask, name="host-ask"),
    path("hosts/reports/", views.host_reports, name="host-reports"),
    path("fleet/hosts/add/", pages.host_add, name="host-add"),
    path("fleet/hosts/<int:pk>/revoke/", pages.host_revoke, name="host-revoke"),
]
