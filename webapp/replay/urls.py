"""Routes of the replay buffer."""

from django.urls import path

from webapp.replay import experiment_deletion_views, transfer_views, views
from webapp.replay.curation import acceptance_views, policy_views
from webapp.replay.curation import views as curation_views
from webapp.replay.imports import views as import_views
from webapp.replay.reviews import views as review_views
from webapp.replay.turns import views as turn_views

urlpatterns = [
    path("experiments/delete/", experiment_deletion_views.delete_experiments, name="experiments-delete"),
    path("replay/", views.inbox, name="replay-inbox"),
    path("replay/entries/", views.entries, name="replay-entries"),
    path("replay/undo/", views.latest_undo, name="replay-undo"),
    path("replay/bulk/", views.bulk_label, name="replay-bulk"),
    path("replay/list/", curation_views.entry_list, name="replay-list"),
    path("replay/clusters/", curation_views.clusters, name="replay-clusters"),
    path("replay/clusters/keep/", curation_views.clusters_keep, name="replay-clusters-keep"),
    path("replay/acceptance/", acceptance_views.save, name="replay-acceptance"),
    path("replay/policies/", policy_views.policies, name="replay-policies"),
    path("replay/policies/save/", policy_views.save, name="replay-policy-save"),
    path("replay/snapshots/take/", policy_views.take, name="replay-snapshot-take"),
    path("replay/reviews/", review_views.reviews, name="replay-reviews"),
    path("replay/reviews/start/", review_views.start, name="replay-review-start"),
    path("replay/reviews/<int:pk>/", review_views.review, name="replay-review"),
    path("replay/reviews/<int:pk>/label/", review_views.label, name="replay-review-label"),
    path("replay/reviews/<int:pk>/undo/", review_views.undo, name="replay-review-undo"),
    path("replay/reviews/<int:pk>/settle/", review_views.settle, name="replay-review-settle"),
    path("replay/guides/", review_views.guides, name="replay-guides"),
    path("replay/turns/<int:pk>/", turn_views.turns, name="turn-labels"),
    path("replay/turns/<int:pk>/mark/", turn_views.mark, name="turn-mark"),
    path("replay/turns/<int:pk>/edit/", turn_views.edit, name="turn-edit"),
    path("replay/process-labels/", turn_views.export, name="process-labels"),
    path("replay/process-labels/import/", turn_views.import_labels, name="process-labels-import"),
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
