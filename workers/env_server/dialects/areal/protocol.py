"""The API of AReaL's OSWorld remote_server: /envs and what is below a session.

Its client gives a trajectory up on any error answer. So, as there, a new session waits for a free desktop,
and an action that cannot be done is reported in `info` beside the unchanged screen.
"""

from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.frame import Frame
from workers.env_server.dialects.contract import Dialect
from workers.env_server.episodes import Episode
from workers.env_server.request import Call
from workers.env_server.step_actions import read_program
from workers.env_server.wire_fields import (
    BadRequest,
    Fields,
    observation,
    pause_of,
    reads_of,
    screen_of,
    task_of,
)
from workers.environments.contract import EnvironmentRequest

PICTURE = "screenshot_b64"


def create(call: Call) -> Fields:
    screen = screen_of(call.fields, None, call.server.screen)
    request = EnvironmentRequest(
        call.server.provider, screen, call.holder, key=call.key, reads=reads_of(call.fields)
    )
    return {"session_id": call.server.episodes.open(request).episode_id}


def reset(call: Call) -> Fields:
    with call.server.episodes.use(call.path["session_id"]) as episode:
        task = task_of(call.fields, episode.screen)
        if task.screen != episode.screen:
            have, want = ("x".join(map(str, size)) for size in (episode.screen, task.screen))
            raise BadRequest(
                f"task_config.screen: the session has {have}, the task needs {want}; create it so"
            )
        return _answer(episode, episode.start(task))


def look(call: Call) -> Fields:
    with call.server.episodes.use(call.path["session_id"]) as episode:
        return _answer(episode, episode.environment.observe())


def step(call: Call) -> Fields:
    if call.fields.get("action") is None:
        raise BadRequest("action: missing")
    pause_s = pause_of(call.fields, 0.0)
    with call.server.episodes.use(call.path["session_id"]) as episode:
        info: Fields = {}
        done = False
        try:
            program = read_program(call.fields["action"], episode.screen, pause_s)
            frame = episode.step(program)
            done = program[-1].status is not None
        except EnvError as error:
            if error.kind is not ErrorKind.TASK:
                raise
            info["action_error"] = str(error)
            frame = episode.environment.observe()
        return _answer(episode, frame) | {"reward": 0.0, "done": done, "info": info}


def evaluate(call: Call) -> Fields:
    with call.server.episodes.use(call.path["session_id"]) as episode:
        return {"reward": episode.evaluate()}


def close(call: Call) -> Fields:
    call.server.episodes.close(call.path["session_id"])
    return {"ok": True}


def _answer(episode: Episode, frame: Frame) -> Fields:
    return {"obs": observation(episode, frame, PICTURE)}


AREAL = Dialect(
    routes={
        ("POST", "/envs/{session_id}/reset"): reset,
        ("GET", "/envs/{session_id}/obs"): look,
        ("POST", "/envs/{session_id}/step"): step,
        ("POST", "/envs/{session_id}/evaluate"): evaluate,
        ("POST", "/envs/{session_id}/close"): close,
    },
    waiting_routes={("POST", "/envs"): create},
)
