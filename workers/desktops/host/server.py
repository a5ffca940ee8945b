"""The desk host's door: newline-delimited JSON over a unix socket.

    -> {"call": "acquire", "arguments": {"provider": "x11", ...}}
    <- {"result": {...}}  or  {"error": {"message", "kind", "permanent"}}

One request at a time per connection; connections are independent.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from workers.desktops.contract import DesktopSpec, EnvError, ErrorKind
from workers.desktops.host import host_report, operations
from workers.desktops.host.desktop_snapshots import Snapshots
from workers.desktops.host.host import DeskHost
from workers.desktops.host.housekeeping import Tender
from workers.desktops.host.task_templates import TaskTemplates
from workers.processes.unix_socket import connect_unix, short_path

log = logging.getLogger("deskhost")

MAX_LINE = 1 << 20
Handler = Callable[[dict[str, Any]], Awaitable[Any]]


class Server:
    """Translates lines to calls of the host."""

    def __init__(self, host: DeskHost) -> None:
        self.host = host
        self.task_templates = TaskTemplates(host)
        self.snapshots = Snapshots(host)
        self.stopping = asyncio.Event()
        self._connections: set[asyncio.StreamWriter] = set()
        self._calls: dict[str, Handler] = {
            "create": self._create,
            "acquire": self._acquire,
            "renew": self._renew,
            "release": self._release,
            "reset": self._reset,
            "prepare": self._prepare,
            "keep": self._keep,
            "snapshot": self._snapshot,
            "wake": self._wake,
            "snapshots": self._snapshots,
            "drop_snapshots": self._drop_snapshots,
            "destroy": self._destroy,
            "list": self._list,
            "health": self._health,
            "watch": self._watch,
            "expect": self._expect,
            "drain": self._drain,
            "quarantine": self._quarantine,
            "release_desktop": self._release_desktop,
            "restart": self._restart,
            "kill": self._kill,
            "shutdown": self._shutdown,
        }

    async def serve(self, socket_path: Path) -> None:
        """Serve until `stopping` is set, then end every desktop."""
        refuse_second_host(socket_path)
        socket_path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            socket_path.unlink()
        old_umask = os.umask(0o177)  # only this user may ask for desktops
        try:
            with short_path(str(socket_path)) as address:
                server = await asyncio.start_unix_server(self._connection, address, limit=MAX_LINE)
        finally:
            os.umask(old_umask)
        tending = asyncio.ensure_future(Tender(self.host).run())
        log.info("desk host ready on %s", socket_path)
        try:
            await self.stopping.wait()
        finally:
            server.close()
            tending.cancel()
            await self.host.close()
            for writer in list(self._connections):
                writer.close()
            await asyncio.sleep(0.05)  # lets the connection tasks see the end of their streams
            with contextlib.suppress(FileNotFoundError):
                socket_path.unlink()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while line := await reader.readline():
                writer.write(json.dumps(await self.answer(line)).encode() + b"\n")
                await writer.drain()
        except (ConnectionError, ValueError):
            return  # the client went away, or sent an endless line
        finally:
            self._connections.discard(writer)
            writer.close()

    async def answer(self, line: bytes) -> dict[str, Any]:
        """The answer to one line; errors are answers too."""
        try:
            request = json.loads(line)
            handler = self._calls.get(request["call"])
            if handler is None:
                raise EnvError(f"call: there is no {request['call']!r}", kind=ErrorKind.TASK, permanent=True)
            return {"result": plain(await handler(request.get("arguments") or {}))}
        except EnvError as exc:
            return failure(str(exc), exc.kind, exc.permanent)
        except ValidationError as exc:
            first = exc.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            return failure(f"{field}: {first['msg']}", ErrorKind.TASK, True)
        except (ValueError, KeyError, TypeError) as exc:
            return failure(f"bad request: {type(exc).__name__}: {exc}", ErrorKind.TASK, True)
        except Exception as exc:
            log.exception("call failed")
            return failure(f"the desk host failed: {type(exc).__name__}: {exc}", ErrorKind.INFRA, False)

    async def _create(self, given: dict[str, Any]) -> Any:
        return await self.host.create(given["provider"], DesktopSpec.model_validate(given.get("spec") or {}))

    async def _acquire(self, given: dict[str, Any]) -> Any:
        spec = DesktopSpec.model_validate(given.get("spec") or {})
        holder, ttl_s = str(given["holder"]), float(given["ttl_s"])
        return await self.host.leases.acquire(given["provider"], spec, holder, ttl_s)

    async def _renew(self, given: dict[str, Any]) -> Any:
        return self.host.leases.renew(given["lease_id"], given.get("ttl_s"))

    async def _release(self, given: dict[str, Any]) -> Any:
        return self.host.leases.release(given["lease_id"])

    async def _reset(self, given: dict[str, Any]) -> Any:
        return await self.host.reset(given["desktop_id"], given["lease_id"])

    async def _prepare(self, given: dict[str, Any]) -> Any:
        return await self.task_templates.prepare(given["desktop_id"], given["lease_id"], str(given["key"]))

    async def _keep(self, given: dict[str, Any]) -> Any:
        return await self.task_templates.keep(given["desktop_id"], given["lease_id"])

    async def _snapshot(self, given: dict[str, Any]) -> Any:
        return await self.snapshots.take(given["desktop_id"], given["lease_id"], str(given["label"]))

    async def _wake(self, given: dict[str, Any]) -> Any:
        return await self.snapshots.wake(given["desktop_id"], given["lease_id"], str(given["name"]))

    async def _snapshots(self, _given: dict[str, Any]) -> Any:
        return await self.snapshots.list()

    async def _drop_snapshots(self, given: dict[str, Any]) -> Any:
        return await self.snapshots.drop([str(name) for name in given["names"]])

    async def _destroy(self, given: dict[str, Any]) -> Any:
        return await self.host.destroy(given["desktop_id"])

    async def _list(self, _given: dict[str, Any]) -> Any:
        return self.host.list()

    async def _health(self, _given: dict[str, Any]) -> Any:
        return host_report.health(self.host)

    async def _watch(self, given: dict[str, Any]) -> Any:
        return await host_report.watch(self.host, int(given.get("after", -1)), float(given.get("wait_s", 0)))

    async def _expect(self, given: dict[str, Any]) -> Any:
        size = (int(given["width"]), int(given["height"]))
        self.host.pool.expect(str(given["provider"]), size, int(given["count"]))

    async def _drain(self, given: dict[str, Any]) -> Any:
        operations.drain(self.host, bool(given["on"]))

    async def _quarantine(self, given: dict[str, Any]) -> Any:
        return await operations.quarantine(self.host, given["desktop_id"], str(given["reason"]))

    async def _release_desktop(self, given: dict[str, Any]) -> Any:
        return await operations.release(self.host, given["desktop_id"])

    async def _restart(self, given: dict[str, Any]) -> Any:
        return await operations.restart(self.host, given["desktop_id"], str(given["reason"]))

    async def _kill(self, given: dict[str, Any]) -> Any:
        return await operations.kill(self.host, given["desktop_id"])

    async def _shutdown(self, _given: dict[str, Any]) -> Any:
        self.stopping.set()


def plain(value: Any) -> Any:
    """JSON types of a result."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def failure(message: str, kind: ErrorKind, permanent: bool) -> dict[str, Any]:
    return {"error": {"message": message, "kind": kind.value, "permanent": permanent}}


def refuse_second_host(socket_path: Path) -> None:
    """Raise EnvError when another host already serves this socket."""
    try:
        connect_unix(str(socket_path)).close()
    except OSError:
        return
    raise EnvError(f"another desk host already serves {socket_path}; stop it first", permanent=True)
