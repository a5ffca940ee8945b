"""The REST API under /api/v1/, with its reference at /api/v1/docs (served from here, no CDN)."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver
from ninja.errors import AuthenticationError
from ninja.parser import Parser

from training.contracts.config import ExperimentConfig
from training.planning.presets import load_presets
from webapp.accounts.access import MemberRequest, memberships
from webapp.api import (
    audit_log,
    checkpoints,
    experiments,
    groups,
    replay_buffer,
    replay_bulk,
    replay_imports,
    reports,
    saved_views,
    sweeps,
    trajectories,
)
from webapp.api.curation import clusters, policies, reviews, scanners, turns
from webapp.api.documented_errors import DocumentedApi
from webapp.api.errors import add_handlers
from webapp.api.experiment_schemas import Me, PresetOut
from webapp.api.idempotency import once_per_key
from webapp.api.steering import alarms_and_logs, controls, fleet, queue
from webapp.api.team import (
    attacks,
    datasets,
    folders,
    members,
    notifications,
    report_links,
    rewards,
    samples,
    tasks,
)
from webapp.api.token_auth import AUTH
from webapp.lib.request_values import json_object


class StrictParser(Parser):
    """A JSON object whose numbers, text and depth can be stored."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Raises BadValue."""
        return json_object(request.body, "body")


SCHEMA = "openapi-json"
PAGES = {"openapi-view", "api-root"}

api = DocumentedApi(
    title="Deskhand",
    version="1",
    description=(
        "Every list is paged by a cursor; errors are {error: {code, message, fields}}. A token acts in its "
        "owner's first team, or in the one that the header Deskhand-Team names. A POST with the header "
        "Idempotency-Key does its work once: sent again within 24 hours it gets the first answer."
    ),
    urls_namespace="api",
    auth=AUTH,
    parser=StrictParser(),
)
add_handlers(api)
api.add_router("/experiments", experiments.router)
api.add_router("/experiments", checkpoints.router)
api.add_router("/experiments", alarms_and_logs.router)
api.add_router("/experiments", datasets.router)
api.add_router("", queue.router)
api.add_router("/sweeps", sweeps.router)
api.add_router("/trajectories", trajectories.router)
api.add_router("", groups.router)
api.add_router("", controls.router)
api.add_router("/replay", replay_buffer.router)
api.add_router("/replay", replay_bulk.router)
api.add_router("/replay", clusters.router)
api.add_router("/replay", policies.router)
api.add_router("/replay", reviews.router)
api.add_router("", turns.router)
api.add_router("", scanners.router)
api.add_router("/replay/imports", replay_imports.router)
api.add_router("/reports", reports.router)
api.add_router("/reports", report_links.router)
api.add_router("/fleet", fleet.router)
api.add_router("/tasks", tasks.router)
api.add_router("", attacks.router)
api.add_router("/rewards", rewards.router)
api.add_router("/team", members.router)
api.add_router("/notifications", notifications.router)
api.add_router("/samples", samples.router)
api.add_router("", folders.router)
api.add_router("/audit", audit_log.router)
api.add_router("/views", saved_views.router)


@api.get("/me", response=Me, tags=["account"], operation_id="show_me")
def show_me(request: MemberRequest) -> Any:
    """Who the token or session belongs to."""
    return {
        "username": request.user.get_username(),
        "teams": {held.team.name: held.role for held in memberships(request)},
    }


@api.get("/config/schema", response=dict[str, Any], tags=["config"], operation_id="config_schema")
def config_schema(request: MemberRequest) -> Any:
    """JSON schema of an experiment config: every knob with its help text, bounds, unit and default."""
    return ExperimentConfig.model_json_schema()


@api.get(
    "/config/presets",
    response=list[PresetOut],
    tags=["config"],
    operation_id="list_presets",
)
def list_presets(request: MemberRequest) -> Any:
    """The named starting points."""
    return load_presets()


def _for_clients(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The schema is for clients: a token opens it, and without one the answer is 401, no redirect."""

    @wraps(view)
    def answer(request: HttpRequest, **arguments: Any) -> HttpResponse:
        if any(allows(request) for allows in AUTH):
            return view(request, **arguments)
        return api.on_exception(request, AuthenticationError())

    return login_not_required(answer)


def _routes() -> tuple[list[URLPattern | URLResolver], str, str]:
    """The API's routes. Its own authentication answers 401 where pages would redirect to the sign-in."""
    patterns, app_name, namespace = api.urls
    for pattern in patterns:
        if not isinstance(pattern, URLPattern):
            continue
        if pattern.name == SCHEMA:
            pattern.callback = _for_clients(pattern.callback)
        elif pattern.name not in PAGES:
            pattern.callback = login_not_required(once_per_key(api, pattern.callback))
    return patterns, app_name, namespace


routes = _routes()
