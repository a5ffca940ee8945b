"""Slime-OSWorld's HTTP env protocol: /reset, /step, /render, /evaluate, /close.

Two answers differ from its own server, because they hid errors there: /render takes a fresh screenshot, and
an evaluator that fails is an HTTP error without a reward.
"""

from workers.env_server.dialects.contract import Dialect
from workers.env_server.request import Call
from workers.env_server.step_actions import read_program
from workers.env_server.wire_fields import (
    Fields,
    observation,
    pause_of,
    reads_of,
    screen_of,
    task_of,
    text_of,
)
from workers.environments.contract import EnvironmentRequest

PICTURE = "screenshot_base64"
PAUSE_S = 2.0


def reset(call: Call) -> Fields:
    """A new episode with its task set up."""
    config = call.fields.get("env_config") or {}
    screen = screen_of(config, call.fields.get("task_config"), call.server.screen)
    task = task_of(call.fields, screen)
    request = EnvironmentRequest(
        call.server.provider, screen, call.holder, key=call.key, reads=reads_of(config)
    )
    episode = call.server.episodes.open(request)
    try:
        with call.server.episodes.use(episode.episode_id):
            return episode.once(
                call.key,
                lambda: {
                    "episode_id": episode.episode_id,
                    **observation(episode, episode.start(task), PICTURE),
                },
            )
    except BaseException:
        call.server.episodes.close(episode.episode_id)
        raise


def step(call: Call) -> Fields:
    pause_s = pause_of(call.fields, PAUSE_S)
    with call.server.episodes.use(text_of(call.fields, "episode_id")) as episode:

        def do() -> Fields:
            program = read_program(call.fields.get("action"), episode.screen, pause_s)
            frame = episode.step(program)
            done = program[-1].status is not None
            seen = observation(episode, frame, PICTURE)
            return seen | {"reward": 0.0, "done": done, "step": episode.num_steps, "info": {}}

        return episode.once(call.key, do)


def render(call: Call) -> Fields:
    with call.server.episodes.use(text_of(call.fields, "episode_id")) as episode:
        return observation(episode, episode.environment.observe(), PICTURE)


def evaluate(call: Call) -> Fields:
    with call.server.episodes.use(text_of(call.fields, "episode_id")) as episode:
        return {"reward": episode.evaluate()}


def close(call: Call) -> Fields:
    episode_id = text_of(call.fields, "episode_id")
    call.server.episodes.close(episode_id)
    return {"status": "closed", "episode_id": episode_id}


SLIME = Dialect(
    routes={
        ("POST", "/reset"): reset,
        ("POST", "/step"): step,
        ("POST", "/render"): render,
        ("POST", "/evaluate"): evaluate,
        ("POST", "/close"): close,
    }
)
