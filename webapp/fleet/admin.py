"""Hosts, workers, desktops and operations in Django's admin."""

from django.contrib import admin

from webapp.fleet.models import BootFailure, Desktop, Host, Operation, Worker
from webapp.lib.read_only_admin import RecordAdmin


@admin.register(Worker)
class WorkerAdmin(RecordAdmin):
    list_display = ["name", "queue", "host", "pid", "slots", "status", "is_draining", "heartbeat_at"]
    list_filter = ["queue", "status"]


@admin.register(Host)
class HostAdmin(RecordAdmin):
    list_display = ["name", "mirrored_by", "max_desktops", "is_draining", "problem", "heartbeat_at"]


@admin.register(Desktop)
class DesktopAdmin(RecordAdmin):
    list_display = ["name", "host", "provider", "phase", "num_resets", "num_failures", "updated_at"]
    list_filter = ["provider", "phase"]


@admin.register(BootFailure)
class BootFailureAdmin(RecordAdmin):
    list_display = ["desktop_name", "host", "provider", "boot_phase", "at"]


@admin.register(Operation)
class OperationAdmin(RecordAdmin):
    list_display = ["verb", "target", "host", "status", "asked_by_name", "asked_at", "outcome"]
    list_filter = ["verb", "status"]
