"""Routes of the list, the queue and the experiment page."""

from django.urls import path

from webapp.experiment_pages import action_views, comparison, edit_views, part_views, views

urlpatterns = [
    path("experiments/", views.experiment_list, name="experiment-list"),
    path("experiments/rows/", views.experiment_rows, name="experiment-rows"),
    path("experiments/compare/", comparison.compare, name="experiment-compare"),
    path("experiments/cancel/", action_views.cancel_experiments, name="experiments-cancel"),
    path("experiments/cancel/undo/", action_views.undo_cancel_experiments, name="experiments-cancel-undo"),
    path("experiments/tag/", edit_views.tag, name="experiments-tag"),
    path("experiments/archive/", edit_views.archive, name="experiments-archive"),
    path("queue/", views.queue, name="queue-show"),
    path("queue/rows/", views.queue_rows, name="queue-rows"),
    path("experiments/<int:pk>/", views.experiment_detail, name="experiment-detail"),
    path("experiments/<int:pk>/parts/<slug:name>/", part_views.part, name="experiment-part"),
    path("experiments/<int:pk>/metrics/", part_views.metrics, name="experiment-metrics"),
    path("experiments/<int:pk>/gpus/", part_views.gpu_series, name="experiment-gpus"),
    path("experiments/<int:pk>/log/", part_views.log_lines, name="experiment-log"),
    path(
        "experiments/<int:pk>/alarms/<slug:name>/acknowledge/",
        action_views.acknowledge,
        name="alarm-acknowledge",
    ),
    path("experiments/<int:pk>/edit/", edit_views.edit, name="experiment-edit"),
    path("experiments/<int:pk>/pause/", action_views.pause, name="experiment-pause"),
    path("experiments/<int:pk>/resume/", action_views.resume, name="experiment-resume"),
    path("experiments/<int:pk>/cancel/", action_views.cancel, name="experiment-cancel"),
    path("experiments/<int:pk>/priority/", action_views.priority, name="experiment-priority"),
    path("experiments/<int:pk>/move/", action_views.move, name="experiment-move"),
]
