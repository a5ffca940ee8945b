"""The smallest HTTP/1.1 server that the agent needs, on asyncio streams (http.server costs more to load)."""

import asyncio
import contextlib
import json
import urllib.parse
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

MAX_BODY = 64 << 20
MAX_HEADER_LINES = 64
PIECE_BYTES = 1 << 20
LOOPBACK = "127.0.0.1"
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 500: "Internal Server Error"}


class HttpError(Exception):
    """Raised by a route to answer with a status and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict:
        """The body as a JSON object. Raises HttpError 400."""
        try:
            value = json.loads(self.body or b"{}")
        except ValueError as exc:
            raise HttpError(400, f"the body is not JSON: {exc}") from exc
        if not isinstance(value, dict):
            raise HttpError(400, "the body must be a JSON object")
        return value

    def form(self) -> dict[str, bytes]:
        """Fields of a urlencoded or multipart body."""
        kind = self.headers.get("content-type", "")
        if kind.startswith("multipart/form-data"):
            return parse_multipart(kind, self.body)
        pairs = urllib.parse.parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True)
        return {key: value.encode() for key, value in pairs}


@dataclass
class Response:
    """What a route answers."""

    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


Route = Callable[[Request], Awaitable[Response]]


def json_response(value: object, status: int = 200) -> Response:
    return Response(json.dumps(value).encode(), status)


def parse_multipart(content_type: str, body: bytes) -> dict[str, bytes]:
    """Fields and files of a multipart body by field name; file names are not needed here."""
    boundary = content_type.partition("boundary=")[2].strip('"').encode()
    if not boundary:
        raise HttpError(400, "multipart body without a boundary")
    fields = {}
    for part in body.split(b"--" + boundary)[1:-1]:
        head, _, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        _, marker, rest = head.partition(b'name="')
        if marker:
            fields[rest.partition(b'"')[0].decode()] = content.removesuffix(b"\r\n")
    return fields


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection, None when it was closed. Raises HttpError."""
    line = await reader.readline()
    if not line:
        return None
    try:
        method, target, _version = line.decode("latin-1").split()
    except ValueError as exc:
        raise HttpError(400, "bad request line") from exc
    headers: dict[str, str] = {}
    for _ in range(MAX_HEADER_LINES):
        header = (await reader.readline()).decode("latin-1").strip()
        if not header:
            break
        key, _, value = header.partition(":")
        headers[key.lower()] = value.strip()
    length = int(headers.get("content-length") or 0)
    if length > MAX_BODY:
        raise HttpError(400, f"body of {length} bytes is above {MAX_BODY}")
    body = await reader.readexactly(length) if length else b""
    path, _, query = target.partition("?")
    return Request(method, path, dict(urllib.parse.parse_qsl(query)), headers, body)


async def serve_connection(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    routes: dict[tuple[str, str], Route],
    *,
    connects: bool = False,
) -> None:
    """Answer the requests of one connection until the client closes it; CONNECT only where it `connects`."""
    try:
        while (request := await read_request(reader)) is not None:
            if connects and request.method == "CONNECT":
                return await connect(reader, writer, request.path)
            await write_response(writer, await answer(request, routes))
    except (HttpError, ValueError, asyncio.IncompleteReadError, ConnectionError):
        return  # nothing sensible can be answered on a broken stream
    finally:
        writer.close()


async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str) -> None:
    """HTTP's CONNECT to a loopback port of this machine: a browser's debugger, a player's own server."""
    host, _, port = target.rpartition(":")
    if host != LOOPBACK or not port.isdigit():
        refusal = f"CONNECT goes to {LOOPBACK}:PORT only, not to {target}"
        return await write_response(writer, json_response({"status": "error", "message": refusal}, 400))
    try:
        inner_reader, inner_writer = await asyncio.open_connection(host, int(port))
    except (OSError, OverflowError) as exc:
        refusal = f"nothing answers on port {port}: {exc}"
        return await write_response(writer, json_response({"status": "error", "message": refusal}, 500))
    try:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        away = asyncio.create_task(copy_bytes(reader, inner_writer))
        await copy_bytes(inner_reader, writer)
        away.cancel()
    finally:
        inner_writer.close()


async def copy_bytes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one side closes."""
    with contextlib.suppress(OSError):
        while data := await reader.read(PIECE_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


async def answer(request: Request, routes: dict[tuple[str, str], Route]) -> Response:
    """Run the route; every failure becomes an answer, so one bad request cannot end the agent."""
    route = routes.get((request.method, request.path))
    if route is None:
        return json_response({"status": "error", "message": f"no route {request.method} {request.path}"}, 404)
    try:
        return await route(request)
    except HttpError as exc:
        return json_response({"status": "error", "message": str(exc)}, exc.status)
    except (OSError, ValueError, KeyError, TypeError) as exc:
        return json_response({"status": "error", "message": f"{type(exc).__name__}: {exc}"}, 500)


async def write_response(writer: asyncio.StreamWriter, response: Response) -> None:
    """Piece by piece: a file of a program's must not take its size again in buffers."""
    reason = REASONS.get(response.status, "Unknown")
    head = [f"HTTP/1.1 {response.status} {reason}", f"Content-Type: {response.content_type}"]
    head += [f"Content-Length: {len(response.body)}"]
    head += [f"{key}: {value}" for key, value in response.headers.items()]
    writer.write("\r\n".join(head).encode() + b"\r\n\r\n")
    body = memoryview(response.body)
    for start in range(0, len(body), PIECE_BYTES):
        writer.write(body[start : start + PIECE_BYTES])
        await writer.drain()
    await writer.drain()
