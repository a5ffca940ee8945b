"""Bare sandboxes: what `workers.environments.gateway` needs of a vendor's cluster (docs/remote.md).

Lifecycle calls carry the token header; calls into a sandbox also its session header.
"""

from pydantic import ValidationError
from starlette.responses import Response

from training.contracts.types import Action, ActionKind
from workers.env_server.dialects.contract import Dialect
from workers.env_server.episodes import Episode
from workers.env_server.request import Call
from workers.env_server.wire_fields import BadRequest, Fields, screen_of, seconds_of, text_of
from workers.environments.contract import EnvironmentRequest

MAX_COMMAND_S = 300.0


def create(call: Call) -> Fields:
    """A sandbox; the same Idempotency-Key gets the same one."""
    owner = text_of(call.fields, "owner")
    screen = screen_of(call.fields, None, call.server.screen)
    request = EnvironmentRequest(call.server.provider, screen, owner, key=call.key)
    return _description(call.server.episodes.open(request))


def list_own(call: Call) -> Fields:
    if "owner" not in call.query:
        raise BadRequest("owner: name whose sandboxes to list")
    return {"sandboxes": [_description(each) for each in call.server.episodes.held(call.query["owner"])]}


def delete(call: Call) -> Response:
    """Gone after it, whether it was there or not."""
    call.server.episodes.close(call.path["sandbox_id"])
    return Response(status_code=204)


def screenshot(call: Call) -> Response:
    with call.server.episodes.use(call.session) as episode:
        return Response(episode.environment.observe().png, media_type="image/png")


def act(call: Call) -> Fields:
    try:
        action = Action.model_validate(call.fields.get("action"))
    except ValidationError as error:
        first = error.errors()[0]
        raise BadRequest(f"action.{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    with call.server.episodes.use(call.session) as episode:

        def do() -> Fields:
            if action.kind is not ActionKind.TERMINATE:
                episode.environment.act(action)
            return {}

        return episode.once(call.key, do)


def execute(call: Call) -> Fields:
    command, shell = _command(call.fields)
    timeout_s = min(seconds_of(call.fields, "timeout_s", 60.0, 1e6), MAX_COMMAND_S)
    with call.server.episodes.use(call.session) as episode:
        agent = episode.environment.desktop.agent

        def do() -> Fields:
            result = agent.execute(command, shell=shell, timeout_s=timeout_s)
            return {"returncode": result.returncode, "output": result.output, "error": result.error}

        return episode.once(call.key, do)


def launch(call: Call) -> Fields:
    command, shell = _command(call.fields)
    with call.server.episodes.use(call.session) as episode:
        agent = episode.environment.desktop.agent
        return episode.once(call.key, lambda: {"pid": agent.launch(command, shell=shell)})


def _command(fields: Fields) -> tuple[str | list[str], bool]:
    command = fields.get("command")
    is_list = isinstance(command, list) and all(isinstance(word, str) for word in command)
    if not command or not (isinstance(command, str) or is_list):
        raise BadRequest("command: a text or a list of texts is needed")
    return command, bool(fields.get("shell", False))


def _description(episode: Episode) -> Fields:
    width, height = episode.screen
    return {
        "sandbox_id": episode.episode_id,
        "session_id": episode.episode_id,
        "owner": episode.holder,
        "key": episode.key,
        "width": width,
        "height": height,
    }


SANDBOXES = Dialect(
    routes={
        ("POST", "/v1/sandboxes"): create,
        ("GET", "/v1/sandboxes"): list_own,
        ("DELETE", "/v1/sandboxes/{sandbox_id}"): delete,
        ("GET", "/v1/screenshot"): screenshot,
        ("POST", "/v1/input"): act,
        ("POST", "/v1/execute"): execute,
        ("POST", "/v1/launch"): launch,
    }
)
