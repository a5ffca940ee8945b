"""Errors of our own processes to a Sentry server, if the installation names one.

Its client is no part of a plain installation. Nothing of people or desktops is sent on purpose: no request
bodies, no local variables, which would hold tokens and screenshots.
"""

from typing import Any

from django.core.exceptions import ImproperlyConfigured

from training.log_lines import ids_now
from webapp import __version__


def report_errors_to(dsn: str) -> None:
    """From now on, unhandled errors and error lines of logs. Raises ImproperlyConfigured."""
    try:
        import sentry_sdk
        from sentry_sdk.utils import BadDsn
    except ImportError as error:
        raise ImproperlyConfigured(
            "DESKHAND_SENTRY_DSN is set, and its client is missing: "
            ".venv/bin/pip install -r requirements/sentry.txt"
        ) from error
    try:
        sentry_sdk.init(
            dsn=dsn,
            release=f"deskhand@{__version__}",
            send_default_pii=False,
            include_local_variables=False,
            max_request_body_size="never",
            before_send=_with_ids,
        )
    except BadDsn as error:
        raise ImproperlyConfigured(f"DESKHAND_SENTRY_DSN: {error}") from error


def _with_ids(event: Any, _hint: Any) -> Any:
    """The trajectory and experiment that the work was about, as tags to search by."""
    event.setdefault("tags", {}).update({name: str(value) for name, value in ids_now().items()})
    return event
