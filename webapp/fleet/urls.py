"""Routes of the fleet page."""

from django.urls import path

from webapp.fleet import views

urlpatterns = [
    path("fleet/", views.fleet, name="fleet-show"),
    path("fleet/parts/", views.fleet_parts, name="fleet-parts"),
]
