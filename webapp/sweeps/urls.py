"""Routes of a sweep's page."""

from django.urls import path

from webapp.sweeps import views

urlpatterns = [
    path("sweeps/<int:pk>/", views.detail, name="sweep-detail"),
    path("sweeps/<int:pk>/rows/", views.rows, name="sweep-rows"),
    path("sweeps/<int:pk>/cost/", views.cost, name="sweep-cost"),
    path("sweeps/<int:pk>/charts/", views.charts, name="sweep-charts"),
    path("sweeps/<int:pk>/pause/", views.pause, name="sweep-pause"),
    path("sweeps/<int:pk>/resume/", views.resume, name="sweep-resume"),
    path("sweeps/<int:pk>/cancel/", views.cancel, name="sweep-cancel"),
]
