"""Routes of the page Storage."""

from django.urls import path

from webapp.retention import views

urlpatterns = [
    path("storage/", views.storage, name="storage-show"),
    path("storage/rules/", views.save_rule, name="retention-save"),
    path("storage/rules/<int:pk>/delete/", views.delete_rule, name="retention-delete"),
]
