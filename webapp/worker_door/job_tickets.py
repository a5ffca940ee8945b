"""Tickets of trajectories that were given to a joined host: without its ticket it claims none."""

from django.core.signing import BadSignature, Signer

from webapp.lib.remote_calls import NotYours, caller


def _signer() -> Signer:
    return Signer(salt="deskhand.trajectory-job")


def make_ticket(trajectory_id: int, host: str) -> str:
    """Lets `host` claim the trajectory."""
    return _signer().sign(f"{trajectory_id}@{host}")


def require_ticket(ticket: str, trajectory_id: int) -> None:
    """Raise NotYours when a joined host claims what it was not given."""
    if not (host := caller.get()):
        return
    try:
        given = _signer().unsign(ticket)
    except BadSignature as error:
        raise NotYours(f"trajectory {trajectory_id} was not given to {host}") from error
    if given != f"{trajectory_id}@{host}":
        raise NotYours(f"trajectory {trajectory_id} was not given to {host}")
