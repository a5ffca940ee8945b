"""One form for every error: {"error": {"code", "message", "fields": {path: message}}}."""

from django.core.exceptions import BadRequest, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from training.contracts.config import ConfigError
from webapp.experiments.checkpoints.usable_checkpoints import CheckpointRefused
from webapp.trajectories.branching import BranchRefused
from webapp.trajectories.kept_desktop_snapshots import SnapshotsRefused


class Conflict(Exception):
    """Raised when the thing is not in a state that allows what was asked."""


def add_handlers(api: NinjaAPI) -> None:
    """Answer every expected error in the one form."""

    def answer(
        request: HttpRequest, status: int, code: str, message: str, fields: dict[str, str] | None = None
    ) -> HttpResponse:
        body = {"error": {"code": code, "message": message, "fields": fields or {}}}
        return api.create_response(request, body, status=status)

    def on(kind: type[Exception], status: int, code: str, message: str = "") -> None:
        api.add_exception_handler(
            kind, lambda request, error: answer(request, status, code, str(error) or message)
        )

    on(Http404, 404, "not_found", "No such thing, or it belongs to a team that you are not in.")
    on(PermissionDenied, 403, "forbidden", "Your role does not include this.")
    on(BadRequest, 400, "bad_request")
    on(Conflict, 409, "conflict")
    on(SnapshotsRefused, 409, "conflict")

    @api.exception_handler(BranchRefused)
    def _branch(request: HttpRequest, error: BranchRefused) -> HttpResponse:
        return answer(request, 409, "branch_refused", str(error), {error.field: str(error)})

    @api.exception_handler(AuthenticationError)
    def _signed_out(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
        return answer(request, 401, "unauthorized", "Send Authorization: Bearer TOKEN, or sign in.")

    @api.exception_handler(HttpError)
    def _http(request: HttpRequest, error: HttpError) -> HttpResponse:
        return answer(request, error.status_code, "refused", str(error))

    @api.exception_handler(ConfigError)
    def _config(request: HttpRequest, error: ConfigError) -> HttpResponse:
        return answer(request, 422, "invalid_config", str(error), error.problems)

    @api.exception_handler(CheckpointRefused)
    def _checkpoint(request: HttpRequest, error: CheckpointRefused) -> HttpResponse:
        fields = {error.field: str(error)} if error.field else {}
        return answer(request, 422 if fields else 409, "checkpoint_refused", str(error), fields)

    @api.exception_handler(ValidationError)
    def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
        fields = {".".join(str(part) for part in item["loc"][1:]): item["msg"] for item in error.errors}
        message = "; ".join(f"{path}: {text}" for path, text in fields.items())
        return answer(request, 422, "invalid", message, fields)
