"""Probes and figures for the people who operate the installation, and for their programs."""

from django.urls import path

from webapp.operations.metrics_view import show_metrics
from webapp.operations.probes import healthz, readyz

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", show_metrics, name="metrics"),
]
