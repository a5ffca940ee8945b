"""Routes of the launch, list, queue and experiment pages."""

from django.urls import path
from django.views.generic import RedirectView

from webapp.experiments.alarms import views as alarm_views
from webapp.experiments.checkpoints import views as checkpoint_views
from webapp.experiments.costs import views as cost_views
from webapp.experiments.evaluations import views as evaluation_views
from webapp.experiments.housekeeping import views as housekeeping_views
from webapp.experiments.launch import views as launch_views
from webapp.experiments.lifecycle import views as action_views
from webapp.experiments.page import comparison, part_views, views
from webapp.experiments.sweeps import views as sweep_views

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="experiment-list"), name="home"),
    path("experiments/", views.experiment_list, name="experiment-list"),
    path("experiments/rows/", views.experiment_rows, name="experiment-rows"),
    path("experiments/compare/", comparison.compare, name="experiment-compare"),
    path("experiments/tasks/", evaluation_views.evaluation_matrix, name="evaluation-matrix"),
    path("experiments/cancel/", action_views.cancel_experiments, name="experiments-cancel"),
    path("experiments/cancel/undo/", action_views.undo_cancel_experiments, name="experiments-cancel-undo"),
    path("experiments/tag/", housekeeping_views.tag, name="experiments-tag"),
    path("experiments/archive/", housekeeping_views.archive, name="experiments-archive"),
    path("experiments/launch/", launch_views.launch, name="experiment-launch"),
    path("experiments/launch/preflight/", launch_views.launch_preflight, name="launch-preflight"),
    path("experiments/launch/yaml/", launch_views.launch_yaml, name="launch-yaml"),
    path("experiments/launch/scale/", launch_views.launch_scale, name="launch-scale"),
    path("experiments/launch/form/", launch_views.launch_form, name="launch-form"),
    path("sweeps/<int:pk>/", sweep_views.detail, name="sweep-detail"),
    path("sweeps/<int:pk>/rows/", sweep_views.rows, name="sweep-rows"),
    path("sweeps/<int:pk>/cost/", sweep_views.cost, name="sweep-cost"),
    path("sweeps/<int:pk>/charts/", sweep_views.charts, name="sweep-charts"),
    path("sweeps/<int:pk>/pause/", sweep_views.pause, name="sweep-pause"),
    path("sweeps/<int:pk>/resume/", sweep_views.resume, name="sweep-resume"),
    path("sweeps/<int:pk>/cancel/", sweep_views.cancel, name="sweep-cancel"),
    path("experiments/prices/", cost_views.prices, name="prices"),
    path("queue/", views.queue, name="queue-show"),
    path("queue/rows/", views.queue_rows, name="queue-rows"),
    path("experiments/<int:pk>/", views.experiment_detail, name="experiment-detail"),
    path("experiments/<int:pk>/config.yaml", launch_views.experiment_yaml, name="experiment-yaml"),
    path("experiments/<int:pk>/parts/<slug:name>/", part_views.part, name="experiment-part"),
    path("experiments/<int:pk>/metrics/", part_views.metrics, name="experiment-metrics"),
    path("experiments/<int:pk>/gpus/", part_views.gpu_series, name="experiment-gpus"),
    path("experiments/<int:pk>/log/", part_views.log_lines, name="experiment-log"),
    path(
        "experiments/<int:pk>/checkpoints/<int:checkpoint_pk>/evaluate/",
        checkpoint_views.evaluate,
        name="checkpoint-evaluate",
    ),
    path(
        "experiments/<int:pk>/checkpoints/<int:checkpoint_pk>/export/",
        checkpoint_views.export,
        name="checkpoint-export",
    ),
    path(
        "experiments/<int:pk>/exports/<int:export_pk>/remove/",
        checkpoint_views.remove_export,
        name="export-remove",
    ),
    path(
        "experiments/<int:pk>/exports/<int:export_pk>.tar",
        checkpoint_views.download_export,
        name="export-download",
    ),
    path("experiments/<int:pk>/alarms/<slug:name>/", alarm_views.alarm, name="alarm-show"),
    path(
        "experiments/<int:pk>/alarms/<slug:name>/acknowledge/",
        action_views.acknowledge,
        name="alarm-acknowledge",
    ),
    path("experiments/<int:pk>/edit/", housekeeping_views.edit, name="experiment-edit"),
    path("experiments/<int:pk>/pause/", action_views.pause, name="experiment-pause"),
    path("experiments/<int:pk>/resume/", action_views.resume, name="experiment-resume"),
    path("experiments/<int:pk>/cancel/", action_views.cancel, name="experiment-cancel"),
    path("experiments/<int:pk>/priority/", action_views.priority, name="experiment-priority"),
    path("experiments/<int:pk>/move/", action_views.move, name="experiment-move"),
]
