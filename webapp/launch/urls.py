"""Routes of the launch page."""

from django.urls import path

from webapp.launch import views

urlpatterns = [
    path("experiments/launch/", views.launch, name="experiment-launch"),
    path("experiments/launch/preflight/", views.launch_preflight, name="launch-preflight"),
    path("experiments/launch/yaml/", views.launch_yaml, name="launch-yaml"),
    path("experiments/launch/scale/", views.launch_scale, name="launch-scale"),
    path("experiments/launch/form/", views.launch_form, name="launch-form"),
    path("experiments/<int:pk>/config.yaml", views.experiment_yaml, name="experiment-yaml"),
]
