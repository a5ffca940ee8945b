"""Groups and trajectories in Django's admin."""

from django.contrib import admin

from webapp.lib.read_only_admin import RecordAdmin
from webapp.trajectories.models import Group, Trajectory


@admin.register(Group)
class GroupAdmin(RecordAdmin):
    list_display = ["id", "experiment", "purpose", "step", "size", "num_final", "num_scored", "reward_mean"]
    list_select_related = ["experiment"]


@admin.register(Trajectory)
class TrajectoryAdmin(RecordAdmin):
    list_display = ["id", "group_id", "family", "status", "num_turns", "score", "reward", "error_kind"]
    search_fields = ["=id"]
