"""Routes of the people who let hosts join."""

from django.urls import path

from webapp.worker_door.joined_hosts import pages

urlpatterns = [
    path("fleet/hosts/add/", pages.host_add, name="host-add"),
    path("fleet/hosts/<int:pk>/revoke/", pages.host_revoke, name="host-revoke"),
]
