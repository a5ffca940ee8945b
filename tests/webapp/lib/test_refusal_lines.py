"""What the log says of requests that are refused, and of those that we fail."""

import logging

import pytest
from django.test import Client

from testing.factories import make_team, make_user
from webapp.accounts.models import Role


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "status", "said"),
    [("/trajectories/?q=%00", 400, "q: holds the character NUL"), ("/audit/", 403, "/audit/")],
)
def test_a_refused_request_takes_one_line(
    client: Client, caplog: pytest.LogCaptureFixture, path: str, status: int, said: str
) -> None:
    client.force_login(make_user(Role.VIEWER, team=make_team()))
    assert client.get(path).status_code == status
    (record,) = [one for one in caplog.records if one.name == "django.request"]
    assert said in record.getMessage()
    assert record.exc_info is None


def test_a_fault_of_ours_is_logged_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise KeyError("ours")
    except KeyError:
        logging.getLogger("django.request").exception("Internal Server Error", extra={"status_code": 500})
    assert caplog.records[-1].exc_info is not None
