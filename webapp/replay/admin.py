"""The replay buffer in Django's admin."""

from django.contrib import admin

from webapp.lib.read_only_admin import RecordAdmin
from webapp.replay.models import LabelEvent, ReplayEntry, ReplaySkipRecord, ReplayUseRecord


@admin.register(ReplayEntry)
class ReplayEntryAdmin(RecordAdmin):
    list_display = ["id", "trajectory_id", "family", "verdict", "labelled_by", "labelled_at", "num_uses"]
    list_filter = ["verdict"]


@admin.register(LabelEvent)
class LabelEventAdmin(RecordAdmin):
    list_display = ["entry_id", "by", "at"]


@admin.register(ReplayUseRecord)
class ReplayUseAdmin(RecordAdmin):
    list_display = ["entry_id", "experiment", "group_id", "step", "policy_age", "advantage", "at"]


@admin.register(ReplaySkipRecord)
class ReplaySkipAdmin(RecordAdmin):
    list_display = ["entry_id", "experiment", "reason", "num_times", "at"]
