"""Routes of attacks on evaluators."""

from django.urls import path

from webapp.attacks import views

urlpatterns = [
    path("tasks/<slug:name>/<int:pk>/attacks/", views.attacks, name="task-attacks"),
    path("trajectories/<int:pk>/attacks/", views.attack_from_turn, name="trajectory-attack"),
    path("exploits/<int:pk>/dismiss/", views.dismiss, name="exploit-dismiss"),
]
