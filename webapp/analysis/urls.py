"""Routes of alarms, prices, and evaluations side by side."""

from django.urls import path

from webapp.analysis.alarms import views as alarm_views
from webapp.analysis.costs import views as cost_views
from webapp.analysis.evaluations import views as evaluation_views

urlpatterns = [
    path("experiments/tasks/", evaluation_views.evaluation_matrix, name="evaluation-matrix"),
    path("experiments/prices/", cost_views.prices, name="prices"),
    path("experiments/<int:pk>/alarms/<slug:name>/", alarm_views.alarm, name="alarm-show"),
]
