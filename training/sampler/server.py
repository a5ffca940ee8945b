"""The policy server: `python -m training.sampler.server --model DIR --config FILE --port 0 --port-file FILE`.

Answers 503 from the first moment, and properly as soon as the model is loaded. The routes are described in
docs/contracts.md; the bearer token is read from DESKHAND_POLICY_TOKEN.
"""

import argparse
import asyncio
import contextlib
import gc
import logging
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from training.contracts.config import ExperimentConfig, from_yaml
from training.contracts.policy_server import PolicyAccess
from training.model.cpu_threads import num_threads
from training.outgoing.remote_addresses import is_loopback
from training.render.renderer import Renderer
from training.sampler.engine import Engine, EngineError
from training.sampler.engines.request_batching import BatchingEngine
from training.sampler.engines.sglang_engine import SglangEngine, start_sglang
from training.sampler.engines.transformers_engine import TransformersEngine
from training.sampler.routes import HANDLERS, guarded
from training.sampler.sampling_seed import sampling_seed
from training.sampler.sessions import PolicyService
from training.sampler.sglang.server_arguments import SglangInstallation, log_folder_beside
from training.sampler.weights.receive_in_process import LocalReceiver
from training.sampler.weights.receive_sglang import SglangReceiver
from training.sampler.weights.receiver import Receiver

log = logging.getLogger("policy server")
SHUTDOWN_S = 5
"""Requests that still run at the end get this long."""


def receiver_of(engine: Engine) -> Receiver | None:
    """How `engine` takes weights from memory; None when it only reads folders."""
    if isinstance(engine, BatchingEngine):
        return LocalReceiver(engine, engine.engine) if isinstance(engine.engine, TransformersEngine) else None
    if isinstance(engine, SglangEngine):
        return SglangReceiver(engine.servers)
    return None


def load_transformers(model: str, config: ExperimentConfig, attempt: int = 0) -> tuple[Engine, Renderer]:
    """Engine and renderer in this process; slow."""
    renderer = Renderer.from_folder(model, config.model, config.prompt)
    engine = TransformersEngine(
        model,
        renderer,
        dtype=config.model.dtype,
        fp32_logits=config.model.fp32_logits,
        seed=sampling_seed(config.optimiser.seed, attempt),
    )
    return BatchingEngine(engine, renderer.pixels), renderer


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedModel:
    model: str
    """Checkpoint folder."""
    config: ExperimentConfig
    token: str
    attempt: int = 0
    """At the experiment, from 1: each generates other random numbers; 0 = none."""
    sglang: SglangInstallation | None = None
    """Needed by the engine sglang."""


async def load_engine(
    served: ServedModel, progress: Callable[[str], None], on_failure: Callable[[], None]
) -> tuple[Engine, Renderer]:
    """The engine that the config names. Raises EngineError, OSError or ValueError."""
    if served.config.engine.name == "transformers":
        progress("loading the model")
        return await asyncio.to_thread(load_transformers, served.model, served.config, served.attempt)
    assert served.sglang is not None, "main finds the installation"
    engine = await start_sglang(
        served.model,
        served.config,
        served.sglang,
        attempt=served.attempt,
        progress=progress,
        on_failure=on_failure,
    )
    return engine, engine.renderer


def build_app(served: ServedModel, on_failure: Callable[[], None] = lambda: None) -> Starlette:
    """The application; loads the model in the background after start-up. `on_failure` ends the process."""

    async def load(app: Starlette) -> None:
        def progress(words: str) -> None:
            app.state.progress = words

        try:
            engine, renderer = await load_engine(served, progress, on_failure)
        except EngineError as error:
            log.error("cannot start the engine: %s", error)
            on_failure()
            return
        except Exception:
            log.exception("cannot load the model %s", served.model)
            on_failure()
            raise
        # Made now: a large vocabulary takes a second to digest, in which turns would wait.
        await asyncio.to_thread(getattr, renderer, "fingerprint")
        app.state.service = PolicyService(
            engine, renderer, limits=served.config.sampling, receiver=receiver_of(engine)
        )
        # Libraries and tokenizer stay for good: without them a full collection takes no tenths of a second.
        gc.collect()
        gc.freeze()
        log.info("serving %s", served.model)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        loading = asyncio.create_task(load(app))
        yield
        loading.cancel()
        await asyncio.gather(loading, return_exceptions=True)
        if app.state.service is not None:
            await app.state.service.close()

    served_routes = [
        Route(route.path, guarded(route, handler), methods=[route.method])
        for route, handler in HANDLERS.items()
    ]
    app = Starlette(routes=served_routes, lifespan=lifespan)
    app.state.service, app.state.access, app.state.model = None, PolicyAccess(served.token), served.model
    app.state.progress, app.state.started_at = "starting", time.monotonic()
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
    parser = argparse.ArgumentParser(
        prog="python -m training.sampler.server", description="Deskhand's policy server"
    )
    parser.add_argument("--model", required=True, help="checkpoint folder in transformers format")
    parser.add_argument("--config", help="experiment config (YAML)")
    parser.add_argument("--attempt", type=int, default=0, help="number of the attempt at the experiment")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 = any free port")
    parser.add_argument("--port-file", help="file that gets the port")
    parser.add_argument("--certificate", help="PEM file; with it the server speaks TLS")
    parser.add_argument("--key", help="PEM file of the certificate's private key")
    options = parser.parse_args(arguments)
    if bool(options.certificate) != bool(options.key):
        parser.error("--certificate and --key belong together")
    if not options.certificate and not is_loopback(options.host):
        parser.error(f"--host {options.host}: beyond this machine it needs --certificate and --key")
    token = os.environ.get("DESKHAND_POLICY_TOKEN", "")
    if not token:
        parser.error("set DESKHAND_POLICY_TOKEN, the token that callers must send")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it would name every request
    torch.set_num_threads(num_threads())
    config = from_yaml(Path(options.config).read_text()) if options.config else ExperimentConfig()
    failed = False

    def fail() -> None:
        nonlocal failed
        failed = server.should_exit = True

    sglang = None
    if config.engine.name == "sglang":
        try:
            sglang = SglangInstallation.from_environment(os.environ, log_folder_beside(options.port_file))
        except EngineError as error:
            log.error("%s", error)
            return 1
    served = ServedModel(
        model=options.model, config=config, token=token, attempt=options.attempt, sglang=sglang
    )
    app = build_app(served, fail)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=SHUTDOWN_S,
            ssl_certfile=options.certificate,
            ssl_keyfile=options.key,
        )
    )
    server.run(sockets=[listen(options.host, options.port, options.port_file)])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
