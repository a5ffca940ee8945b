"""Workers and desktops in Django's admin."""

from django.contrib import admin

from webapp.fleet.models import Desktop, Worker
from webapp.lib.admin import RecordAdmin


@admin.register(Worker)
class WorkerAdmin(RecordAdmin):
    list_display = ["name", "queue", "host", "pid", "slots", "status", "heartbeat_at"]
    list_filter = ["queue", "status"]


@admin.register(Desktop)
class DesktopAdmin(RecordAdmin):
    list_display = ["name", "host", "provider", "phase", "num_resets", "num_failures", "updated_at"]
    list_filter = ["provider", "phase"]
