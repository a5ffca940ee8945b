"""Live streams in Django's admin."""

from django.contrib import admin

from webapp.lib.read_only_admin import RecordAdmin
from webapp.live.models import Event, Stream


@admin.register(Stream)
class StreamAdmin(RecordAdmin):
    list_display = ["name", "last_seq"]
    search_fields = ["name"]


@admin.register(Event)
class EventAdmin(RecordAdmin):
    list_display = ["stream", "seq", "type", "created_at"]
    search_fields = ["=stream"]
