"""Tokens with which env hosts ask an attempt's policy server: one of each host, ended with its identity."""

from datetime import datetime

from training.contracts.policy_server import host_token
from webapp.experiments.models import Attempt
from webapp.fleet.models import JoinedHost, Worker


def policy_token(attempt: Attempt, worker: Worker) -> str:
    """Of the worker's host; "" while the attempt has no policy server."""
    if not attempt.policy_token:
        return ""
    joined = JoinedHost.objects.filter(host__name=worker.host).first() if worker.is_joined else None
    return host_token(attempt.policy_token, worker.host, _ms(joined.joined_at) if joined else 0)


def ended_hosts() -> dict[str, int]:
    """Host -> moment before which it joined with what has ended, whatever clocks said in between.

    A host that was revoked has no good token; of one that joined again the new one is good.
    """
    rows = JoinedHost.objects.values_list("host__name", "joined_at", "revoked_at")
    return {
        name: max(_ms(joined), _ms(revoked)) + 1 if revoked else _ms(joined) for name, joined, revoked in rows
    }


def _ms(at: datetime) -> int:
    return round(1000 * at.timestamp())
