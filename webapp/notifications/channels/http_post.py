"""One POST to where a rule points: allowed addresses only, no redirects, no proxies, one deadline for all."""

from typing import Any

import httpx
from django.conf import settings

from training.outgoing.allowed_connections import post_guarded
from training.outgoing.remote_addresses import RefusedAddress
from training.outgoing.secret_store import SecretError, read_secret
from webapp.lib.request_values import BadValue, decimal_number
from webapp.notifications.channels.contract import Check, NotDelivered, Rule

DEADLINE_S = 15.0


def secret_of(rule: Rule) -> str:
    """The secret's value; "" when the rule names none. Raises NotDelivered."""
    try:
        return read_secret(rule.secret, settings.SECRETS_DIR) if rule.secret else ""
    except SecretError as error:
        raise NotDelivered(str(error), is_permanent=True) from error


def post(rule: Rule, url: str, *, check: Check, **request: Any) -> None:
    """Send it; an answer of 2xx means that it was taken. Raises NotDelivered, never with the URL in it."""
    try:
        check(rule.team, rule.target, rule.secret)
    except BadValue as refused:
        problem = f"this installation no longer allows the rule's {refused.field}"
        raise NotDelivered(problem, is_permanent=True) from refused
    try:
        answer = post_guarded(url, networks=settings.REMOTE_NETWORKS, within_s=DEADLINE_S, **request)
    except RefusedAddress as refused:
        raise NotDelivered(str(refused), is_permanent=True) from refused
    except httpx.TimeoutException as error:
        raise NotDelivered(f"no answer within {DEADLINE_S:.0f} s") from error
    except httpx.InvalidURL as error:
        raise NotDelivered("the URL cannot be used", is_permanent=True) from error
    except httpx.HTTPError as error:
        raise NotDelivered(f"no connection ({type(error).__name__})") from error
    if not 200 <= answer.status < 300:
        raise NotDelivered(
            f"the receiver answered {answer.status}",
            retry_after_s=_seconds(answer.headers.get("retry-after")),
        )


def _seconds(text: str | None) -> float:
    """What a receiver that is asked too often wants us to wait; 0 for dates and nonsense."""
    try:
        return decimal_number(text or "0", "retry-after", low=0, high=1e6)
    except BadValue:
        return 0.0
