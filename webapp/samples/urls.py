"""Routes of the samples."""

from django.urls import path

from webapp.samples import views

urlpatterns = [
    path("samples/", views.seed_samples, name="samples-seed"),
    path("samples/delete/", views.remove_samples, name="samples-delete"),
]
