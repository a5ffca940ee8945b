"""Routes of the replay buffer."""

from django.urls import path

from webapp.replay import experiment_deletion_views, transfer_views, views
from webapp.replay.imports import views as import_views

urlpatterns = [
    path("experiments/delete/", experiment_deletion_views.delete_experiments, name="experiments-delete"),
    path("replay/", views.inbox, name="replay-inbox"),
    path("replay/entries/", views.entries, name="replay-entries"),
    path("replay/undo/", views.latest_undo, name="replay-undo"),
    path("replay/bulk/", views.bulk_label, name="replay-bulk"),
    path("replay/stats/", views.buffer_stats, name="replay-stats"),
    path("replay/transfer/", transfer_views.transfer, name="replay-transfer"),
    path("replay/imports/<int:pk>/", import_views.show, name="replay-import"),
    path("replay/imports/<int:pk>/part/", import_views.part, name="replay-import-part"),
    path("replay/imports/<int:pk>/start/", import_views.start, name="replay-import-start"),
    path("replay/imports/<int:pk>/cancel/", import_views.cancel, name="replay-import-cancel"),
    path("replay/export/", transfer_views.export, name="replay-export"),
    path("replay/<int:pk>/", views.entry_detail, name="replay-detail"),
    path("replay/<int:pk>/label/", views.entry_label, name="replay-label"),
    path("replay/<int:pk>/undo/", views.entry_undo, name="replay-entry-undo"),
]
