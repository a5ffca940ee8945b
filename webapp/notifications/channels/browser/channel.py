"""Pages of the team that are open show it, where a person allowed that browser to."""

from webapp.accounts.models import Team
from webapp.lib.request_values import BadValue
from webapp.live.event_publishing import publish
from webapp.notifications.channels.contract import Channel, Message, Rule
from webapp.notifications.channels.targets import check_length, refuse_secret


def show_in_browsers(rule: Rule, message: Message) -> None:
    """A page that is opened within minutes shows it, too."""
    shown_notice = {
        "id": message.id,
        "title": message.title,
        "text": message.text,
        "url": message.url,
        "at": message.at.timestamp(),
    }
    publish(f"notices.{message.team_id}", "notice.shown", shown_notice)


def check_no_target(team: Team, target: str, secret: str) -> None:
    """Raises BadValue."""
    check_length(target)
    refuse_secret("browser", secret)
    if target:
        raise BadValue("target", "browsers need none: leave it empty")


BROWSER = Channel("Browser", show_in_browsers, check_no_target, lambda: "no target")
