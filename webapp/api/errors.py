"""One form for every error: {"error": {"code", "message", "fields": {path: message}}}."""

from typing import Any

from django.core.exceptions import BadRequest, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from training.contracts.config import ConfigError
from webapp.accounts.services.members import MemberError
from webapp.checkpoints.download import CannotDownload
from webapp.experiments.queries.checkpoints import CheckpointRefused
from webapp.fleet.services import operations
from webapp.lib.error_pages import NO_SUCH, NOT_ALLOWED, error_body
from webapp.lib.request_values import BadValue
from webapp.replay.services.labels import LabelConflict, NothingToUndo
from webapp.replay.services.review_rounds import AlreadyLabelled
from webapp.screens.services.controls import NotControllable
from webapp.trajectories.queries.branches import BranchRefused
from webapp.trajectories.services.snapshots import SnapshotsRefused

Answer = tuple[int, str, str, dict[str, str]]
"""Status, code, message, field -> message."""


class Conflict(Exception):
    """Raised when the thing is not in a state that allows what was asked."""


def _bad_value(error: BadValue) -> Answer:
    return 400, "bad_request", str(error), {error.field: error.problem}


def _http(error: HttpError) -> Answer:
    if isinstance(error.__cause__, BadValue):  # from our parser, which the framework wraps
        return _bad_value(error.__cause__)
    return error.status_code, "refused", str(error), {}


def _invalid(error: ValidationError) -> Answer:
    fields = {".".join(str(part) for part in item["loc"][1:]): item["msg"] for item in error.errors}
    message = "; ".join(f"{path}: {text}" for path, text in fields.items())
    return 422, "invalid", message, fields


def _checkpoint(error: CheckpointRefused) -> Answer:
    fields = {error.field: str(error)} if error.field else {}
    return 422 if fields else 409, "checkpoint_refused", str(error), fields


CONFLICTS: tuple[type[Exception], ...] = (
    *(Conflict, MemberError, CannotDownload, LabelConflict, NothingToUndo, AlreadyLabelled),
    *(NotControllable, SnapshotsRefused, operations.Refused),
)
"""The thing is not in a state that allows what was asked."""
SENTENCES: dict[type[Exception], tuple[int, str, str]] = {
    Http404: (404, "not_found", NO_SUCH),
    PermissionDenied: (403, "forbidden", NOT_ALLOWED),
    BadRequest: (400, "bad_request", ""),
    **dict.fromkeys(CONFLICTS, (409, "conflict", "")),
    AuthenticationError: (401, "unauthorized", "Send Authorization: Bearer TOKEN, or sign in."),
}
"""Status, code, and what to say when the error itself says nothing."""
WITH_FIELDS: dict[type[Exception], Any] = {
    BadValue: _bad_value,
    HttpError: _http,
    ValidationError: _invalid,
    CheckpointRefused: _checkpoint,
    ConfigError: lambda error: (422, "invalid_config", str(error), error.problems),
    BranchRefused: lambda error: (409, "branch_refused", str(error), {error.field: str(error)}),
}


def _answer_of(error: Exception) -> Answer:
    for kind in type(error).__mro__:
        if kind in WITH_FIELDS:
            return WITH_FIELDS[kind](error)
        if kind in SENTENCES:
            status, code, message = SENTENCES[kind]
            said = message if kind is AuthenticationError else str(error) or message
            return status, code, said, {}
    raise error


def add_handlers(api: NinjaAPI) -> None:
    """Answer every expected error in the one form."""

    def handle(request: HttpRequest, error: Any) -> HttpResponse:
        status, code, message, fields = _answer_of(error)
        return api.create_response(request, error_body(code, message, fields), status=status)

    for kind in (*SENTENCES, *WITH_FIELDS):
        api.add_exception_handler(kind, handle)
