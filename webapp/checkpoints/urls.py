"""Routes of what people do with checkpoints."""

from django.urls import path

from webapp.checkpoints import views

urlpatterns = [
    path(
        "experiments/<int:pk>/checkpoints/<int:checkpoint_pk>/evaluate/",
        views.evaluate,
        name="checkpoint-evaluate",
    ),
    path(
        "experiments/<int:pk>/checkpoints/<int:checkpoint_pk>/export/",
        views.export,
        name="checkpoint-export",
    ),
    path(
        "experiments/<int:pk>/exports/<int:export_pk>/remove/",
        views.remove_export,
        name="export-remove",
    ),
    path(
        "experiments/<int:pk>/exports/<int:export_pk>.tar",
        views.download_export,
        name="export-download",
    ),
]
