"""The routes of the policy server: what each reads, does and answers."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from training.contracts import policy_server as routes
from training.contracts.policy_server import Opener, PolicyAccess
from training.contracts.route_types import LOADING, MalformedMessage, Nothing, Problem, ProblemAnswer
from training.contracts.route_types import Route as ProtocolRoute
from training.sampler.recorded_prefix import post_prefix
from training.sampler.sessions import PolicyService, ServiceError, json_answer

MAX_SCREENSHOT_BYTES = 32 * 1024 * 1024

Handler = Callable[[Request, PolicyService], Awaitable[Response]]


def guarded(route: ProtocolRoute[Any, Any], handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Check the token, wait for the model, and turn known errors into answers."""

    async def endpoint(request: Request) -> Response:
        access: PolicyAccess = request.app.state.access
        opener = access.opener_of(request.headers.get("authorization", "").removeprefix("Bearer "))
        if opener is None:
            return error_answer(
                401, "unauthorized", "send the policy server's token as Authorization: Bearer"
            )
        if opener.host and route not in OF_HOSTS:
            return error_answer(403, "not_for_hosts", "a host's token opens its own trajectories only")
        request.state.opener = opener
        service: PolicyService | None = request.app.state.service
        if service is None:
            waited = time.monotonic() - request.app.state.started_at
            answer = error_answer(503, LOADING, f"{request.app.state.progress} ({waited:.0f} s)")
            answer.headers["Retry-After"] = "1"
            return answer
        try:
            return await handler(request, service)
        except ServiceError as error:
            return error_answer(error.status, error.code, error.message)
        except MalformedMessage as error:
            return error_answer(400, "bad_request", str(error))

    return endpoint


def error_answer(status: int, code: str, message: str) -> Response:
    answer = ProblemAnswer(error=Problem(code=code, message=message))
    return Response(answer.model_dump_json(), status, media_type="application/json")


def session_name(request: Request, trajectory_id: str) -> str:
    """Of the caller's own trajectories."""
    opener: Opener = request.state.opener
    return opener.session_name(trajectory_id)


async def health(request: Request, service: PolicyService) -> Response:
    answer = routes.Health(
        policy_version=service.engine.policy_version,
        model=request.app.state.model,
        needs_weights=service.weight_sync.needs_weights(),
    )
    return json_answer(routes.HEALTH, answer)


async def post_turn(request: Request, service: PolicyService) -> Response:
    async with request.form(max_part_size=MAX_SCREENSHOT_BYTES) as form:
        part, screenshot = form.get("request"), form.get("screenshot")
        if part is None:
            raise ServiceError(400, "bad_request", "request: the form field is missing")
        text = (await part.read()).decode() if isinstance(part, UploadFile) else part
        turn = routes.TURN.read_request(request.path_params, {}, text.encode())
        turn = turn.model_copy(update={"trajectory_id": session_name(request, turn.trajectory_id)})
        png = await screenshot.read() if isinstance(screenshot, UploadFile) else None
    return json_answer(routes.TURN, await service.complete(turn, png))


async def get_waited(request: Request, service: PolicyService) -> Response:
    waited_s = service.waited_s(session_name(request, request.path_params["trajectory_id"]))
    return json_answer(routes.WAITED, routes.Waited(waited_s=waited_s))


async def delete_trajectory(request: Request, service: PolicyService) -> Response:
    service.forget(session_name(request, request.path_params["trajectory_id"]))
    return json_answer(routes.FORGET, Nothing())


async def post_weights(request: Request, service: PolicyService) -> Response:
    asked = routes.WEIGHTS.read_request({}, {}, await request.body())
    return json_answer(routes.WEIGHTS, await service.sync(asked))


async def post_canary(_request: Request, service: PolicyService) -> Response:
    return json_answer(routes.CANARY, await service.canary())


async def post_eyes(request: Request, service: PolicyService) -> Response:
    asked = routes.EYES.read_request({}, {}, await request.body())
    return json_answer(routes.EYES, await service.eyes(asked))


async def get_engine(_request: Request, service: PolicyService) -> Response:
    return json_answer(routes.ENGINE, service.engine.describe())


async def post_sleep(_request: Request, service: PolicyService) -> Response:
    await service.sleep()
    return json_answer(routes.SLEEP, Nothing())


async def post_wake(_request: Request, service: PolicyService) -> Response:
    await service.wake()
    return json_answer(routes.WAKE, Nothing())


async def post_hosts_end(request: Request, _service: PolicyService) -> Response:
    asked = routes.END_HOSTS.read_request({}, {}, await request.body())
    request.app.state.access.end(asked.hosts)
    return json_answer(routes.END_HOSTS, Nothing())


async def begin_with_prefix(request: Request, service: PolicyService) -> Response:
    return await post_prefix(request, service, lambda name: session_name(request, name))


OF_HOSTS = (routes.HEALTH, routes.TURN, routes.PREFIX, routes.WAITED, routes.FORGET)
"""What an env host's token opens; all else is the gpu worker's."""
HANDLERS: dict[ProtocolRoute[Any, Any], Handler] = {
    routes.HEALTH: health,
    routes.TURN: post_turn,
    routes.PREFIX: begin_with_prefix,
    routes.WAITED: get_waited,
    routes.FORGET: delete_trajectory,
    routes.WEIGHTS: post_weights,
    routes.CANARY: post_canary,
    routes.EYES: post_eyes,
    routes.ENGINE: get_engine,
    routes.SLEEP: post_sleep,
    routes.WAKE: post_wake,
    routes.END_HOSTS: post_hosts_end,
}
