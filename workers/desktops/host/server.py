"""The desk host's HTTP server on a unix socket.

POST /acquire {"provider": "x11", ...}  ->  200 and the result
                                        ->  400, 500, 503 {"error": {"message", "kind", "permanent"}}
"""

import asyncio
import contextlib
import inspect
import json
import logging
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from pydantic import ValidationError, validate_call
from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.host import host_report
from workers.desktops.host.desktop_snapshots import Snapshots
from workers.desktops.host.host import DeskHost
from workers.desktops.host.leases import Leases
from workers.desktops.host.operator_calls import Operations
from workers.desktops.host.periodic_checks import PeriodicChecks
from workers.desktops.host.resets import Resets
from workers.desktops.host.task_templates import TaskTemplates
from workers.processes.unix_socket import connect_unix, listen_unix

log = logging.getLogger("deskhost")

IDLE_LIMIT_S = 24 * 3600
"""Clients close idle connections: if we did, a call that just begins on one would fail."""
STATUS = {ErrorKind.TASK: 400, ErrorKind.QUOTA: 503}
Call = Callable[..., Any]


class Server:
    """Answers calls of a host until it is stopped."""

    def __init__(self, host: DeskHost) -> None:
        self.host = host
        self.stopping = asyncio.Event()
        self._resets = Resets(host)
        self._leases = Leases(host, self._resets)
        self._calls = {name: validate_call(call) for name, call in self._table().items()}

    def _table(self) -> dict[str, Call]:
        host, snapshots, templates = self.host, Snapshots(self.host), TaskTemplates(self.host)
        operations = Operations(host, self._leases)
        return {
            "create": host.create,
            "acquire": self._leases.acquire,
            "renew": self._leases.renew,
            "release": self._leases.release,
            "reset": self._resets.reset,
            "prepare": templates.prepare,
            "keep": templates.keep,
            "snapshot": snapshots.take,
            "wake": snapshots.wake,
            "snapshots": snapshots.list,
            "drop_snapshots": snapshots.drop,
            "destroy": host.destroy,
            "list": host.list,
            "health": partial(host_report.health, host),
            "watch": partial(host_report.watch, host),
            "expect": host.pool.expect,
            "drain": operations.drain,
            "quarantine": operations.quarantine,
            "release_desktop": operations.release,
            "restart": operations.restart,
            "kill": operations.kill,
            "shutdown": self.stopping.set,
        }

    async def serve(self, socket_path: Path, listener: socket.socket | None = None) -> None:
        """Serve until `stopping` is set, then end every desktop. `listener`: that path, open already."""
        if listener is None:
            refuse_second_host(socket_path)
            listener = listen_unix(socket_path)
        application = Starlette(routes=[Route("/{call}", self._endpoint, methods=["POST"])])
        config = uvicorn.Config(
            application,
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_keep_alive=IDLE_LIMIT_S,
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        checks = asyncio.create_task(PeriodicChecks(self.host, self._leases).run())
        log.info("desk host ready on %s", socket_path)
        try:
            await self.stopping.wait()
        finally:
            checks.cancel()
            await self.host.close()
            # What is still at work waits for desktops that have ended.
            server.should_exit = server.force_exit = True
            await serving
            with contextlib.suppress(FileNotFoundError, PermissionError):  # root made it
                socket_path.unlink()

    async def _endpoint(self, request: Request) -> Response:
        """The answer to one call; errors are answers too."""
        name = request.path_params["call"]
        try:
            call = self._calls.get(name)
            if call is None:
                raise EnvError(f"call: there is no {name!r}", kind=ErrorKind.TASK, permanent=True)
            result = call(**json.loads(await request.body()))
            if inspect.isawaitable(result):
                result = await result
            return Response(to_json(result), media_type="application/json")
        except EnvError as error:
            return failure(str(error), error.kind, error.permanent)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            return failure(f"{field}: {first['msg']}", ErrorKind.TASK, True)
        except (ValueError, TypeError) as error:
            return failure(f"bad request: {type(error).__name__}: {error}", ErrorKind.TASK, True)
        except Exception as error:
            log.exception("call failed")
            return failure(f"the desk host failed: {type(error).__name__}: {error}", ErrorKind.INFRA, False)


def failure(message: str, kind: ErrorKind, permanent: bool) -> JSONResponse:
    """The answer to a call that failed."""
    error = {"message": message, "kind": kind.value, "permanent": permanent}
    return JSONResponse({"error": error}, STATUS.get(kind, 500))


def refuse_second_host(socket_path: Path) -> None:
    """Raise EnvError when another host already serves this socket."""
    try:
        connect_unix(str(socket_path)).close()
    except OSError:
        return
    raise EnvError(f"another desk host already serves {socket_path}; stop it first", permanent=True)
