"""Routes of the trajectory pages."""

from django.urls import path

from webapp.trajectories import branch_views, observed_views, views
from webapp.trajectories.side_by_side import views as side_by_side

urlpatterns = [
    path("trajectories/", views.trajectory_list, name="trajectory-list"),
    path("trajectories/<int:pk>/", views.trajectory_detail, name="trajectory-detail"),
    path("trajectories/<int:pk>/turns/", views.trajectory_turns, name="trajectory-turns"),
    path(
        "trajectories/<int:pk>/turns/<int:index>/completion/", views.turn_completion, name="turn-completion"
    ),
    path("trajectories/<int:pk>/turns/<int:index>/texts/", observed_views.turn_texts, name="turn-texts"),
    path("trajectories/<int:pk>/status/", views.trajectory_status, name="trajectory-status"),
    path("trajectories/<int:pk>/summary/", views.trajectory_summary, name="trajectory-summary"),
    path("trajectories/<int:pk>/snapshots/", branch_views.switch_snapshots, name="trajectory-snapshots"),
    path("trajectories/<int:pk>/branches/", branch_views.show_branches, name="trajectory-branches"),
    path("trajectories/<int:pk>/branch/", branch_views.branch_from_turn, name="trajectory-branch"),
    path("trajectories/<int:pk>/tree/", branch_views.show_tree, name="trajectory-tree"),
    path("trajectories/<int:pk>/tree/rows/", branch_views.show_tree_rows, name="trajectory-tree-rows"),
    path(
        "experiments/tasks/c/<int:before>/<int:after>/<int:task_pk>/",
        side_by_side.task_side_by_side,
        name="task-side-by-side",
    ),
    path("groups/<int:pk>/", views.group_detail, name="group-detail"),
    path("groups/<int:pk>/lane/", views.group_lane, name="group-lane"),
]
