"""What usually brings an alarm about: guards that fired about when it began."""

from collections.abc import Iterable, Sequence

from webapp.experiments.guards import GUARDS
from webapp.experiments.models import AlarmRecord, AlarmStatus

LATEST_CAUSE_STEPS = 2
"""A cause may cross its limit this many steps after its effect."""


PLACES = {name: place for place, name in enumerate(GUARDS)}


def causes_first(alarms: Iterable[AlarmRecord]) -> list[AlarmRecord]:
    """Active ones first; among these, causes before their effects."""
    return sorted(
        alarms,
        key=lambda alarm: (alarm.status != AlarmStatus.ACTIVE, PLACES.get(alarm.name, len(PLACES))),
    )


def likely_cause(alarm: AlarmRecord, alarms: Sequence[AlarmRecord]) -> AlarmRecord | None:
    """The alarm at the root of this one, which fired about when it began; None when it is a root itself."""
    by_name = {other.name: other for other in alarms}
    for name in alarm.guard.brought_about_by:
        cause = by_name.get(name)
        if cause is not None and _explains(cause, alarm):
            return likely_cause(cause, alarms) or cause
    return None


def brought_about(cause: AlarmRecord, alarms: Sequence[AlarmRecord]) -> list[AlarmRecord]:
    """The alarms that `cause` is the likely cause of."""
    return [alarm for alarm in alarms if likely_cause(alarm, alarms) == cause]


def _explains(cause: AlarmRecord, alarm: AlarmRecord) -> bool:
    """It began before the other did, or hardly later, and still fired then."""
    return cause.since_step <= alarm.since_step + LATEST_CAUSE_STEPS and cause.step >= alarm.since_step
