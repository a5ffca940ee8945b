"""Routes of the reward lab."""

from django.urls import path

from webapp.rewards_lab import views

urlpatterns = [
    path("rewards/", views.lab, name="reward-lab"),
    path("rewards/try/", views.try_preset, name="reward-try"),
    path("rewards/save/", views.save, name="reward-save"),
]
