"""Channels by the name that rules store."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from webapp.notifications.channels.browser.channel import BROWSER
from webapp.notifications.channels.contract import Channel
from webapp.notifications.channels.discord.channel import DISCORD
from webapp.notifications.channels.email.channel import EMAIL
from webapp.notifications.channels.slack.channel import SLACK
from webapp.notifications.channels.webhook.channel import WEBHOOK

CHANNELS: dict[str, Channel] = {
    "webhook": WEBHOOK,
    "slack": SLACK,
    "discord": DISCORD,
    "email": EMAIL,
    "browser": BROWSER,
}

if TYPE_CHECKING:
    ChannelName = str
else:
    # The table is the only list of names; the API shows this one.
    ChannelName = StrEnum("Channel", {name.upper(): name for name in CHANNELS}, module=__name__)
    ChannelName.__doc__ = "Where a rule tells it."


def channel_choices() -> list[tuple[str, str]]:
    """For the column of rules."""
    return [(name, channel.label) for name, channel in CHANNELS.items()]
