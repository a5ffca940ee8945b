"""That the dispatcher was there."""

from django.utils import timezone

from webapp.dispatcher.models import THE_ROW, DispatcherBeat


def beat(tick_s: float) -> None:
    """Record that ticks are done."""
    DispatcherBeat.objects.update_or_create(pk=THE_ROW, defaults={"at": timezone.now(), "tick_s": tick_s})
