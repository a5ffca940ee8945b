"""A message as every channel gets it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from webapp.notifications.models import Delivery
from webapp.notifications.pictures import picture_of, token_of


@dataclass(frozen=True, slots=True)
class Message:
    """What is told, without how."""

    id: str
    """The same in every try."""
    kind: str
    title: str
    text: str
    url: str
    """Of the page that shows it."""
    team_id: int
    team: str
    experiment_id: int | None
    at: datetime
    picture: bytes | None
    """A strip of screenshots as a JPEG."""
    picture_url: str
    """Shows the same without a sign-in, for 30 days; "" without one."""


def message_of(delivery: Delivery) -> Message:
    """The message of a delivery whose rule and team are loaded."""
    site, picture = delivery.rule.site_url, picture_of(delivery.frames)
    where = reverse("notification-picture", args=[token_of(delivery)]) if picture else ""
    return Message(
        id=f"deskhand-{delivery.pk}-{delivery.nonce}",
        kind=delivery.kind,
        title=delivery.title,
        text=delivery.text,
        url=site + delivery.path,
        team_id=delivery.team_id,
        team=delivery.rule.team.name,
        experiment_id=delivery.experiment_id,
        at=delivery.created_at,
        picture=picture,
        picture_url=site + where if where else "",
    )
