"""Routes of the trajectory pages."""

from django.urls import path

from webapp.trajectories import views

urlpatterns = [
    path("trajectories/", views.trajectory_list, name="trajectory-list"),
    path("trajectories/<int:pk>/", views.trajectory_detail, name="trajectory-detail"),
    path("trajectories/<int:pk>/turns/", views.trajectory_turns, name="trajectory-turns"),
    path("trajectories/<int:pk>/status/", views.trajectory_status, name="trajectory-status"),
    path("trajectories/<int:pk>/summary/", views.trajectory_summary, name="trajectory-summary"),
    path("groups/<int:pk>/", views.group_detail, name="group-detail"),
    path("groups/<int:pk>/lane/", views.group_lane, name="group-lane"),
]
