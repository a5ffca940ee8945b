"""The routes of the policy server: what each reads, does and answers."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from training.contracts import policy_server as routes
from training.contracts.route_types import LOADING, MalformedMessage, Nothing, Problem, ProblemAnswer
from training.contracts.route_types import Route as ProtocolRoute
from training.sampler.recorded_prefix import post_prefix
from training.sampler.sessions import PolicyService, ServiceError, json_answer

MAX_SCREENSHOT_BYTES = 32 * 1024 * 1024

Handler = Callable[[Request, PolicyService], Awaitable[Response]]


def guarded(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Check the token, wait for the model, and turn known errors into answers."""

    async def endpoint(request: Request) -> Response:
        sent = request.headers.get("authorization", "")
        if not secrets.compare_digest(sent.encode(), f"Bearer {request.app.state.token}".encode()):
            return error_answer(
                401, "unauthorized", "send the policy server's token as Authorization: Bearer"
            )
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
        png = await screenshot.read() if isinstance(screenshot, UploadFile) else None
    return json_answer(routes.TURN, await service.complete(turn, png))


async def get_waited(request: Request, service: PolicyService) -> Response:
    waited_s = service.waited_s(request.path_params["trajectory_id"])
    return json_answer(routes.WAITED, routes.Waited(waited_s=waited_s))


async def delete_trajectory(request: Request, service: PolicyService) -> Response:
    service.forget(request.path_params["trajectory_id"])
    return json_answer(routes.FORGET, Nothing())


async def post_weights(request: Request, service: PolicyService) -> Response:
    asked = routes.WEIGHTS.read_request({}, {}, await request.body())
    return json_answer(routes.WEIGHTS, await service.sync(asked))


async def post_canary(_request: Request, service: PolicyService) -> Response:
    return json_answer(routes.CANARY, await service.canary())


async def get_engine(_request: Request, service: PolicyService) -> Response:
    return json_answer(routes.ENGINE, service.engine.describe())


async def post_sleep(_request: Request, service: PolicyService) -> Response:
    await service.sleep()
    return json_answer(routes.SLEEP, Nothing())


async def post_wake(_request: Request, service: PolicyService) -> Response:
    await service.wake()
    return json_answer(routes.WAKE, Nothing())


HANDLERS: dict[ProtocolRoute[Any, Any], Handler] = {
    routes.HEALTH: health,
    routes.TURN: post_turn,
    routes.PREFIX: post_prefix,
    routes.WAITED: get_waited,
    routes.FORGET: delete_trajectory,
    routes.WEIGHTS: post_weights,
    routes.CANARY: post_canary,
    routes.ENGINE: get_engine,
    routes.SLEEP: post_sleep,
    routes.WAKE: post_wake,
}
