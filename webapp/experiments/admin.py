"""Task sets and experiments in Django's admin."""

from django.contrib import admin

from webapp.experiments.models import Attempt, CheckpointRecord, Experiment, Incident, TaskRecord, TaskSet
from webapp.lib.read_only_admin import RecordAdmin


@admin.register(TaskSet)
class TaskSetAdmin(RecordAdmin):
    list_display = ["name", "title", "origin", "created_at"]


@admin.register(TaskRecord)
class TaskRecordAdmin(RecordAdmin):
    list_display = ["task_id", "task_set", "family", "level", "split", "status", "oracle_score", "idle_score"]
    list_filter = ["task_set", "split", "status"]
    search_fields = ["task_id", "instruction"]


@admin.register(Experiment)
class ExperimentAdmin(RecordAdmin):
    list_display = ["id", "name", "team", "owner", "status", "stage", "step", "created_at"]
    list_filter = ["status", "team"]
    search_fields = ["name"]


@admin.register(Attempt)
class AttemptAdmin(RecordAdmin):
    list_display = ["experiment", "number", "worker_name", "status", "reason", "started_at", "ended_at"]
    exclude = ["policy_token"]


@admin.register(CheckpointRecord)
class CheckpointAdmin(RecordAdmin):
    list_display = ["experiment", "step", "policy_version", "path", "size_bytes", "is_best", "deleted_at"]


@admin.register(Incident)
class IncidentAdmin(RecordAdmin):
    list_display = ["experiment", "kind", "message", "at"]
