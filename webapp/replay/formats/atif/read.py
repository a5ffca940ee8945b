"""An ATIF document -> a line of the replay format. Every problem names its step.

Of other programs' documents: one action a step, by its one call or in its words; a last message without a
call ends the trajectory; steps that were copied as context are not learned.
"""

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

from webapp.lib.request_values import BadValue, shortened
from webapp.replay.formats.atif.write import KEY
from webapp.replay.formats.conversation import IMAGE, ReadProblem
from webapp.replay.formats.messages import read_action

VERSIONS = "ATIF-v1."
DONE = {"action": "terminate", "status": "success"}
ReadFile = Callable[[str], bytes]
"""A file beside the document, by its path. Raises ReadProblem."""


def is_document(data: object) -> bool:
    """Whether a JSON value says that it is one."""
    return isinstance(data, dict) and str(data.get("schema_version", "")).startswith(VERSIONS)


def line_of_document(data: dict[str, Any], read_file: ReadFile) -> dict[str, Any]:
    """The line; its images as base64. Raises ReadProblem."""
    steps = data.get("steps")
    if not isinstance(steps, list) or not steps:
        raise ReadProblem("steps", "missing or not a list")
    own = _mapping(_mapping(data.get("extra")).get(KEY))
    reader = _Steps(read_file, is_ours=bool(own))
    for place, step in enumerate(steps):
        if not isinstance(step, dict):
            raise ReadProblem(f"steps[{place}]", "not an object")
        reader.read(step, f"steps[{place}]", is_last=place == len(steps) - 1)
    fields = {"messages": reader.messages, **own, "images": reader.images}
    return fields if own else fields | _told_by_others(data)


def _told_by_others(data: dict[str, Any]) -> dict[str, Any]:
    """Task and reward, where the document tells: under `extra`, or the session as a task of its own."""
    extra = _mapping(data.get("extra"))
    final = _mapping(_mapping(data.get("final_metrics")).get("extra"))
    agent = _mapping(data.get("agent"))
    reward = next((one["reward"] for one in (extra, final) if one.get("reward") is not None), None)
    task = (
        extra.get("task_id") or extra.get("task_name") or data.get("session_id") or data.get("trajectory_id")
    )
    return {
        "task_id": str(task or ""),
        "reward": reward,
        "metadata": {"source": "atif", "agent": agent.get("name"), "model": agent.get("model_name")},
    }


class _Steps:
    """Messages and images of the steps that were read."""

    def __init__(self, read_file: ReadFile, *, is_ours: bool) -> None:
        self.messages: list[dict[str, Any]] = []
        self.images: list[str] = []
        self._read_file, self._is_ours = read_file, is_ours

    def read(self, step: dict[str, Any], where: str, *, is_last: bool) -> None:
        source = step.get("source")
        if source not in ("system", "user", "agent"):
            raise ReadProblem(f"{where}.source", "not system, user or agent")
        if source != "agent":
            text = self._content(step.get("message"), f"{where}.message")
            self.messages.append({"role": source, "content": text})
        else:
            self._read_agent(step, where, is_last=is_last)
        for number, result in enumerate(_list(_mapping(step.get("observation")).get("results"))):
            at = f"{where}.observation.results[{number}]"
            content = _mapping(result).get("content")
            if content is not None:
                self._observe(self._content(content, f"{at}.content"), is_more=number > 0)

    def _observe(self, text: str, *, is_more: bool) -> None:
        if is_more and self.messages[-1]["role"] == "user":
            self.messages[-1]["content"] += f"\n{text}"
        else:
            self.messages.append({"role": "user", "content": text})

    def _read_agent(self, step: dict[str, Any], where: str, *, is_last: bool) -> None:
        said = step.get("message") or ""
        if isinstance(said, list):
            said = "\n".join(str(_mapping(part).get("text") or "") for part in said)
        if not isinstance(said, str):
            raise ReadProblem(f"{where}.message", "neither text nor a list of parts")
        if not self._is_ours:
            said = _with_call(said or str(step.get("reasoning_content") or ""), step, where, is_last=is_last)
        mask = _mapping(step.get("extra")).get("step_loss_mask")
        if step.get("is_copied_context"):
            mask = 0
        self.messages.append(
            {"role": "assistant", "content": said} | ({} if mask is None else {"step_loss_mask": mask})
        )

    def _content(self, content: Any, where: str) -> str:
        """Its text, with a mark where a picture is."""
        if isinstance(content, str):
            return content
        texts = []
        for number, part in enumerate(_list(content, where)):
            at = f"{where}[{number}]"
            match _mapping(part):
                case {"type": "text", "text": str(text)}:
                    texts.append(text)
                case {"type": "image", "source": {"path": str(path)}}:
                    body = self._read_file(path)
                    self.images.append(b64encode(body).decode())
                    texts.append(IMAGE)
                case _:
                    raise ReadProblem(at, "neither a text nor an image with a path")
        return ("" if self._is_ours else "\n").join(texts)


def _with_call(said: str, step: dict[str, Any], where: str, *, is_last: bool) -> str:
    """The agent's words with its call as our reader knows it, where they do not hold one."""
    calls = _list(step.get("tool_calls") or [], f"{where}.tool_calls")
    if not calls and (not is_last or _holds_action(said)):
        return said
    found = [_arguments(_mapping(call), f"{where}.tool_calls[{at}]") for at, call in enumerate(calls)]
    for arguments in found or [DONE]:
        call = json.dumps({"name": "computer_use", "arguments": arguments}, ensure_ascii=False)
        said = f"{said}\n<tool_call>\n{call}\n</tool_call>"
    return said.lstrip()


def _holds_action(said: str) -> bool:
    try:
        return read_action(said, "").action is not None
    except (ReadProblem, BadValue):
        return False


def _arguments(call: dict[str, Any], where: str) -> dict[str, Any]:
    arguments = call.get("arguments")
    if not isinstance(arguments, dict):
        raise ReadProblem(f"{where}.arguments", f"not an object: {shortened(arguments)}")
    if "action" not in arguments:
        arguments = {"action": str(call.get("function_name", "")), **arguments}
    if "coordinate" not in arguments and {"x", "y"} <= arguments.keys():
        arguments = {**arguments, "coordinate": [arguments["x"], arguments["y"]]}
    return arguments


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any, where: str = "") -> list[Any]:
    if value is None and not where:
        return []
    if not isinstance(value, list):
        raise ReadProblem(where or "observation.results", "not a list")
    return value
