"""Routes of the task library."""

from django.urls import path

from webapp.tasks_library import editor_views, upload_views, views

urlpatterns = [
    path("tasks/", views.task_sets, name="task-sets"),
    path("task-editor/", editor_views.editor, name="task-editor"),
    path("task-editor/check/", editor_views.check, name="task-check"),
    path("task-editor/try/", editor_views.try_out, name="task-try"),
    path("task-upload/", upload_views.upload, name="task-upload"),
    path("tasks/<slug:name>/", views.task_set, name="task-set"),
    path("tasks/<slug:name>/<int:pk>/", views.task, name="task-show"),
    path("tasks/<slug:name>/<int:pk>/verification/", views.verification, name="task-verification"),
]
