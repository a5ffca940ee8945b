"""Routes of the task library."""

from django.urls import path

from webapp.tasks_library import views

urlpatterns = [
    path("tasks/", views.task_sets, name="task-sets"),
    path("tasks/<slug:name>/", views.task_set, name="task-set"),
    path("tasks/<slug:name>/<int:pk>/", views.task, name="task-show"),
]
