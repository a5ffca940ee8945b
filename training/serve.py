"""The policy server: `python -m training.serve --model DIR --config FILE --port 0 --port-file FILE`.

Answers 503 from the first moment, and properly as soon as the model is loaded. The routes are described in
docs/contracts.md; the bearer token is read from DESKHAND_POLICY_TOKEN.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import torch
import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from training.config import ExperimentConfig, from_yaml
from training.engine import Engine
from training.engine_batches import BatchedEngine
from training.engine_transformers import TransformersEngine
from training.prefixes import post_prefix
from training.rendering import Renderer
from training.sessions import PolicyService, ServiceError, TurnRequest
from training.weights.receivers import receiver_of
from training.weights.requests import REQUEST

log = logging.getLogger("policy server")
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
            answer = error_answer(503, "loading", "the model is still loading")
            answer.headers["Retry-After"] = "1"
            return answer
        try:
            return await handler(request, service)
        except ServiceError as error:
            return error_answer(error.status, error.code, error.message)
        except ValidationError as error:
            problem = error.errors()[0]
            field = ".".join(str(part) for part in problem["loc"]) or "body"
            return error_answer(400, "bad_request", f"{field}: {problem['msg']}")

    return endpoint


def error_answer(status: int, code: str, message: str) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status)


async def health(request: Request, service: PolicyService) -> Response:
    answer = {
        "status": "ok",
        "policy_version": service.engine.policy_version,
        "model": request.app.state.model,
    }
    if service.reception.needs_weights():
        answer["needs_weights"] = True
    return JSONResponse(answer)


async def post_turn(request: Request, service: PolicyService) -> Response:
    async with request.form(max_part_size=MAX_SCREENSHOT_BYTES) as form:
        part, screenshot = form.get("request"), form.get("screenshot")
        if part is None:
            raise ServiceError(400, "bad_request", "request: the form field is missing")
        text = (await part.read()).decode() if isinstance(part, UploadFile) else part
        turn = TurnRequest.model_validate_json(text)
        png = await screenshot.read() if isinstance(screenshot, UploadFile) else None
    completion = await service.complete(request.path_params["trajectory_id"], turn, png)
    return Response(completion.model_dump_json(), media_type="application/json")


async def delete_trajectory(request: Request, service: PolicyService) -> Response:
    service.forget(request.path_params["trajectory_id"])
    return JSONResponse({})


async def post_weights(request: Request, service: PolicyService) -> Response:
    answer = await service.sync(REQUEST.validate_json(await request.body()))
    return JSONResponse(answer.model_dump())


async def post_canary(_request: Request, service: PolicyService) -> Response:
    return JSONResponse(await service.canary())


ROUTES = [
    Route("/health", guarded(health), methods=["GET"]),
    Route("/trajectories/{trajectory_id}/turns", guarded(post_turn), methods=["POST"]),
    Route("/trajectories/{trajectory_id}/prefix", guarded(post_prefix), methods=["POST"]),
    Route("/trajectories/{trajectory_id}", guarded(delete_trajectory), methods=["DELETE"]),
    Route("/weights", guarded(post_weights), methods=["POST"]),
    Route("/canary", guarded(post_canary), methods=["POST"]),
]


def build_service(model: str, config: ExperimentConfig) -> tuple[Engine, Renderer]:
    """Load engine and renderer; slow."""
    renderer = Renderer.from_folder(model, config.model, config.prompt)
    engine = TransformersEngine(model, renderer, dtype=config.model.dtype, seed=config.optimiser.seed)
    return BatchedEngine(engine, renderer.pixels), renderer


def build_app(
    model: str, config: ExperimentConfig, token: str, on_failure: Callable[[], None] | None = None
) -> Starlette:
    """The application; loads the model in the background after start-up. `on_failure` ends the process."""

    async def load(app: Starlette) -> None:
        try:
            engine, renderer = await asyncio.to_thread(build_service, model, config)
        except Exception:
            log.exception("cannot load the model %s", model)
            if on_failure:
                on_failure()
            raise
        app.state.service = PolicyService(
            engine, renderer, limits=config.sampling, receiver=receiver_of(engine)
        )
        log.info("serving %s", model)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        loading = asyncio.create_task(load(app))
        yield
        loading.cancel()
        if app.state.service is not None:
            await app.state.service.close()

    app = Starlette(routes=ROUTES, lifespan=lifespan)
    app.state.service, app.state.token, app.state.model = None, token, model
    return app


def listen(host: str, port: int, port_file: str | None) -> socket.socket:
    """A listening socket whose real port is written to `port_file`."""
    listener = socket.create_server((host, port), backlog=256)
    if port_file:
        temporary = Path(f"{port_file}.tmp")
        temporary.write_text(f"{listener.getsockname()[1]}\n")
        temporary.replace(port_file)
    return listener


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m training.serve", description="Deskhand's policy server")
    parser.add_argument("--model", required=True, help="checkpoint folder in transformers format")
    parser.add_argument("--config", help="experiment config (YAML)")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 = any free port")
    parser.add_argument("--port-file", help="file that gets the port")
    options = parser.parse_args(arguments)
    token = os.environ.get("DESKHAND_POLICY_TOKEN", "")
    if not token:
        parser.error("set DESKHAND_POLICY_TOKEN, the token that callers must send")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    config = from_yaml(Path(options.config).read_text()) if options.config else ExperimentConfig()
    failed = False

    def fail() -> None:
        nonlocal failed
        failed = server.should_exit = True

    app = build_app(options.model, config, token, fail)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    server.run(sockets=[listen(options.host, options.port, options.port_file)])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
