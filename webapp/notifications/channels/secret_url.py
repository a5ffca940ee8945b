"""URLs of chats: {secret} in one stands for the rule's secret, since the URL is what no one else may know."""

from webapp.notifications.channels.contract import Rule
from webapp.notifications.channels.http_post import secret_of
from webapp.notifications.channels.targets import SECRET


def url_of(rule: Rule) -> str:
    """The URL with the secret in its place. Raises NotDelivered."""
    return rule.target.replace(SECRET, secret_of(rule)) if SECRET in rule.target else rule.target


def hint() -> str:
    return "URL of its incoming webhook"
