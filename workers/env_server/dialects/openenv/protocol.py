"""OpenEnv's protocol below /openenv: reset, step and state of episodes that carry their reward.

    reset {index, split | task_id | task, max_turns, reward_preset, require_a11y_tree, require_terminal}
                                                                    -> {observation, reward, done, metadata}
    step  {action: {code} or {command}, episode_id}                 -> the same; reward when done
`code` is pyautogui code or DONE, FAIL, WAIT; `command` is our own normal form of an action. An action that
cannot be read or done is a turn like any other, reported in `observation.error`. Source: OpenEnv 0.10, its
client speaks the WebSocket (web_socket.py); over plain HTTP a step names its `episode_id`.
"""

import base64
from typing import Any

from pydantic import ValidationError

from training.actions.coordinates import off_screen_error
from training.contracts.config.reward_presets import REWARD_PRESETS, RewardConfig
from training.contracts.types import Action, Task
from workers.desktops.contract import EnvError, ErrorKind
from workers.env_server.dialects.contract import Routes
from workers.env_server.episodes import Episode
from workers.env_server.request import Call
from workers.env_server.rewarded_episode import RewardedEpisode
from workers.env_server.step_actions import read_program
from workers.env_server.wire_fields import BadRequest, Fields, reads_of, task_of, text_of, texts_of
from workers.environments.contract import EnvironmentRequest

PREFIX = "/openenv"
SCORE_ALONE = "task-score.v1"
MAX_TURNS = 30
MOST_TURNS = 200
WAIT_S = 1.0


def reset(call: Call) -> Fields:
    """Begin a task: on the desktop of `episode_id` where it fits, else on a new one."""
    task = chosen_task(call)
    rewards = _rewards(call.fields)
    max_turns = _whole(call.fields, "max_turns", task.max_turns or MAX_TURNS, 1, MOST_TURNS)
    episode_id = _fitting(call, task) or _opened(call, task)
    try:
        with call.server.episodes.use(episode_id) as episode:
            frame = episode.start(task)
            episode.rewarded = RewardedEpisode(task, rewards, max_turns, frame)
            return answer(episode, episode.rewarded)
    except BaseException:
        call.server.episodes.close(episode_id)
        raise


def step(call: Call) -> Fields:
    """One turn. Raises BadRequest once the episode has ended."""
    with call.server.episodes.use(text_of(call.fields, "episode_id")) as episode:
        rewarded = _rewarded(episode)

        def do() -> Fields:
            if rewarded.is_done:
                raise BadRequest("the episode has ended; reset it")
            rewarded.step(episode, *_read_action(call.fields.get("action"), episode.screen))
            return answer(episode, rewarded)

        return episode.once(call.key, do)


def end(call: Call) -> Fields:
    """The client goes no further: the episode is truncated, scored and rewarded. Asked again, the same."""
    with call.server.episodes.use(text_of(call.fields, "episode_id")) as episode:
        rewarded = _rewarded(episode)
        rewarded.end(episode)
        return answer(episode, rewarded)


def state(call: Call) -> Fields:
    episode_id = call.query.get("episode_id") or text_of(call.fields, "episode_id")
    with call.server.episodes.use(episode_id) as episode:
        rewarded = _rewarded(episode)
        return {
            "episode_id": episode.episode_id,
            "step_count": len(rewarded.turns),
            "task_id": rewarded.task.task_id,
            "max_turns": rewarded.max_turns,
            "done": rewarded.is_done,
        }


def close(call: Call) -> Fields:
    return {"closed": call.server.episodes.close(text_of(call.fields, "episode_id"))}


def list_tasks(call: Call) -> Fields:
    """The server's own tasks; a reset names one by its place in this list."""
    listed = _of_split(call, call.query.get("split", ""))
    columns = ("task_id", "instruction", "screen", "split")
    return {"tasks": [{name: getattr(task, name) for name in columns} for task in listed]}


def health(_call: Call) -> Fields:
    return {"status": "healthy"}


def metadata(call: Call) -> Fields:
    return {
        "name": "deskhand",
        "description": f"Desktops of provider {call.server.provider} with tasks, evaluators and rewards.",
        "version": "1",
    }


def schema(_call: Call) -> Fields:
    text, number = {"type": "string"}, {"type": "integer"}
    action = {"type": "object", "properties": {"code": text, "command": Action.model_json_schema()}}
    words = ("screenshot_png", "accessibility_tree", "terminal", "instruction", "error")
    seen = {"width": number, "height": number, **dict.fromkeys(words, text)}
    now = {"episode_id": text, "step_count": number, "task_id": text, "max_turns": number}
    return {
        "action": action,
        "observation": {"type": "object", "properties": seen},
        "state": {"type": "object", "properties": now},
    }


def answer(episode: Episode, rewarded: RewardedEpisode) -> Fields:
    """What both kinds of clients get; `reward` is null until the episode has ended."""
    facts: Fields = {"episode_id": episode.episode_id, "task_id": rewarded.task.task_id}
    if rewarded.reward is not None:
        terms = [{"name": term.name, "contribution": term.contribution} for term in rewarded.reward.terms]
        facts |= {"score": rewarded.score, "terms": terms, "truncated": rewarded.is_truncated}
    return {
        "observation": {
            "screenshot_png": base64.b64encode(rewarded.frame.png).decode(),
            "width": rewarded.frame.width,
            "height": rewarded.frame.height,
            **texts_of(rewarded.frame),
            "instruction": rewarded.task.instruction,
            "error": rewarded.error,
        },
        "reward": rewarded.reward.reward if rewarded.reward else None,
        "done": rewarded.is_done,
        "metadata": facts,
    }


def chosen_task(call: Call) -> Task:
    """The client's own task, or one of the server's. Raises BadRequest."""
    fields = call.fields
    if fields.get("task") is not None:
        return task_of({"task_config": fields["task"]}, call.server.screen)
    listed = _of_split(call, fields.get("split") or "")
    if not listed:
        raise BadRequest("task: the server has no tasks of its own (--tasks); send one")
    if (name := fields.get("task_id")) is not None:
        found = next((task for task in listed if task.task_id == name), None)
        if found is None:
            raise BadRequest(f"task_id: the server has no task {str(name)[:80]!r}")
        return found
    by_seed = _whole(fields, "seed", 0, 0, 2**63)
    return listed[_whole(fields, "index", by_seed, 0, 2**63) % len(listed)]


def _of_split(call: Call, split: Any) -> list[Task]:
    if split not in ("", "train", "heldout"):
        raise BadRequest('split: "train", "heldout" or nothing')
    return [task for task in call.server.tasks if split in ("", task.split)]


def _rewards(fields: Fields) -> RewardConfig:
    preset = fields.get("reward_preset") or SCORE_ALONE
    if not isinstance(preset, str) or preset not in REWARD_PRESETS:
        raise BadRequest(f"reward_preset: one of {', '.join(REWARD_PRESETS)}")
    return RewardConfig(preset=preset)


def _whole(fields: Fields, name: str, default: int, least: int, most: int) -> int:
    value = fields.get(name)
    if value is None:
        return default
    if type(value) is not int or not least <= value <= most:
        raise BadRequest(f"{name}: a whole number from {least} to {most}")
    return value


def _fitting(call: Call, task: Task) -> str:
    """The open episode that the client names, if screen and texts are those asked for; else "", and it is
    closed."""
    episode_id = call.fields.get("episode_id")
    held = [each for each in call.server.episodes.held() if each.episode_id == episode_id]
    if not held or (held[0].screen, held[0].reads) == (task.screen, reads_of(call.fields)):
        return held[0].episode_id if held else ""
    call.server.episodes.close(held[0].episode_id)
    return ""


def _opened(call: Call, task: Task) -> str:
    reads = reads_of(call.fields)
    request = EnvironmentRequest(call.server.provider, task.screen, call.holder, key=call.key, reads=reads)
    return call.server.episodes.open(request).episode_id


def _rewarded(episode: Episode) -> RewardedEpisode:
    if episode.rewarded is None:
        raise BadRequest("episode_id: this episode was opened by another protocol; reset it here")
    return episode.rewarded


def _read_action(action: Any, screen: tuple[int, int]) -> tuple[list[Action], str]:
    """(the actions, "") or ([], why they cannot be read); a form that no agent writes raises BadRequest."""
    if not isinstance(action, dict) or len({"code", "command"} & action.keys()) != 1:
        raise BadRequest('action: {"code": "pyautogui.click(10, 20)"} or {"command": {"kind": "click", ...}}')
    try:
        if "code" in action:
            return read_program(action["code"], screen, WAIT_S), ""
        command = Action.model_validate(action["command"])
    except EnvError as error:
        if error.kind is not ErrorKind.TASK:
            raise
        return [], str(error)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadRequest(f"action.command.{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    if outside := off_screen_error(command, screen):
        return [], outside
    return [command], ""


ROUTES: Routes = {
    ("POST", f"{PREFIX}/step"): step,
    ("GET", f"{PREFIX}/state"): state,
    ("POST", f"{PREFIX}/end"): end,
    ("POST", f"{PREFIX}/close"): close,
    ("GET", f"{PREFIX}/tasks"): list_tasks,
    ("GET", f"{PREFIX}/health"): health,
    ("GET", f"{PREFIX}/metadata"): metadata,
    ("GET", f"{PREFIX}/schema"): schema,
}
WAITING_ROUTES: Routes = {("POST", f"{PREFIX}/reset"): reset}
