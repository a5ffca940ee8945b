"""OpenEnv's WebSocket: one connection holds one desktop, and gives it back when it ends.

client {type: reset | step | state | close, data} -> server {type: observation | state | error, data}
"""

import asyncio

from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from workers.desktops.contract import EnvError
from workers.env_server.dialects.contract import Dialect, Handler, Run
from workers.env_server.dialects.openenv import protocol
from workers.env_server.episodes import UnknownEpisode
from workers.env_server.request import Call, ServerFacts
from workers.env_server.wire_fields import BadRequest, Fields, read_fields
from workers.environments.contract import AtCapacity
from workers.tasks.errors import TaskError

MESSAGES: dict[str, Handler] = {
    "reset": protocol.reset,
    "step": protocol.step,
    "state": protocol.state,
}


async def serve(socket: WebSocket, facts: ServerFacts, run: Run) -> None:
    """Answer messages one by one until the client goes away."""
    await socket.accept()
    episode_id = ""
    try:
        while True:
            message = _read(await socket.receive())
            if message.get("type") == "close":
                break
            answer = await _answer(message, episode_id, facts, run, holder=_holder(socket))
            if message.get("type") == "reset" and answer["type"] == "observation":
                episode_id = answer["data"]["metadata"]["episode_id"]
            await socket.send_json(answer)
    except WebSocketDisconnect:
        pass
    finally:
        if episode_id:
            await asyncio.shield(asyncio.to_thread(facts.episodes.close, episode_id))


def _read(received: Message) -> Fields:
    """What came, as text or bytes; {} for anything that is no JSON object. Raises WebSocketDisconnect."""
    if received["type"] == "websocket.disconnect":
        raise WebSocketDisconnect
    try:
        return read_fields(received.get("text") or received.get("bytes") or "")
    except BadRequest:
        return {}


async def _answer(message: Fields, episode_id: str, facts: ServerFacts, run: Run, *, holder: str) -> Fields:
    kind, data = message.get("type"), message.get("data")
    handler = MESSAGES.get(kind) if isinstance(kind, str) else None
    if handler is None:
        return _error(f"type: one of {', '.join(MESSAGES)}, close", "UNKNOWN_TYPE")
    fields = data if isinstance(data, dict) else {}
    if kind != "reset" and not episode_id:
        return _error("reset first", "SESSION_ERROR")
    if kind == "step":
        fields = {"action": fields}
    call = Call(server=facts, fields={**fields, "episode_id": episode_id}, holder=holder)
    try:
        found = await run(handler, call)
    except AtCapacity as error:
        return _error(str(error), "CAPACITY_REACHED")
    except (BadRequest, UnknownEpisode) as error:
        return _error(str(error), "VALIDATION_ERROR")
    except (TaskError, EnvError) as error:
        return _error(str(error), "EXECUTION_ERROR")
    return {"type": "state" if kind == "state" else "observation", "data": found}


def _error(message: str, code: str) -> Fields:
    return {"type": "error", "data": {"message": message, "code": code}}


def _holder(socket: WebSocket) -> str:
    return f"{socket.client.host}:{socket.client.port}" if socket.client else ""


OPENENV = Dialect(
    routes=protocol.ROUTES,
    waiting_routes=protocol.WAITING_ROUTES,
    sockets={f"{protocol.PREFIX}/ws": serve},
)
