"""A message as every channel gets it."""

from django.urls import reverse

from webapp.notifications.channels.contract import Message
from webapp.notifications.models import Delivery
from webapp.notifications.pictures import picture_of, token_of


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
