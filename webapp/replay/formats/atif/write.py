"""A line of the replay format -> an ATIF document.

system, and the first user message -> steps of their own; an assistant message -> an agent's step with its
call; what the user's side answers, screenshots mostly -> that step's observation.
"""

from typing import Any

from training.actions.write.json_call import json_arguments
from training.contracts.types import Action, Turn
from webapp import __version__
from webapp.replay.formats.conversation import IMAGE, Message, ReadProblem, read_conversation
from webapp.replay.formats.messages import read_action

SCHEMA = "ATIF-v1.7"
TOOL = "computer_use"
KEY = "deskhand"
"""Under `extra`: what the format has no place for."""
IMAGES = "images"


def document_of(record: dict[str, Any], shas: list[str]) -> dict[str, Any]:
    """The document of a line whose `images` are the frames `shas`. Raises ReadProblem."""
    named = {**record, "images": [f"sha256:{sha}" for sha in shas]}
    messages = read_conversation(named)
    line = {name: value for name, value in record.items() if name not in ("messages", "images")}
    if not all(map(is_plain, record["messages"])):
        line["messages"] = record["messages"]
    turns = _turns_of(record, messages)
    steps = _steps(messages, turns)
    tokens = [step["metrics"] for step in steps if "metrics" in step]
    return {
        "schema_version": SCHEMA,
        "session_id": f"deskhand-{record.get('task_id')}",
        "agent": {"name": "deskhand", "version": __version__},
        "steps": steps,
        "final_metrics": {
            "total_steps": len(steps),
            **{f"total_{name}": sum(one[name] for one in tokens) for name in TOKENS if tokens},
            "extra": {"reward": record.get("reward")},
        },
        "extra": {KEY: line},
    }


TOKENS = ("prompt_tokens", "completion_tokens")


def is_plain(message: Any) -> bool:
    """Whether steps hold all of a message."""
    match message:
        case {"role": "assistant", "content": str(), "step_loss_mask": int(mask), **others}:
            return not others and mask == 0 and mask is not False
        case {"role": "system" | "user" | "assistant", "content": str(), **others}:
            return not others
    return False


def _turns_of(record: dict[str, Any], messages: list[Message]) -> list[Turn | None]:
    """The recorded turn behind each assistant message, where Deskhand recorded them."""
    num_said = sum(message.role == "assistant" for message in messages)
    metadata = record.get("metadata")
    own = metadata.get("deskhand") if isinstance(metadata, dict) else None
    raw = own.get("turns", []) if isinstance(own, dict) else []
    turns = [turn for turn in map(Turn.model_validate, raw) if turn.action is not None]
    return [*turns] if len(turns) == num_said else [None] * num_said


def _steps(messages: list[Message], turns: list[Turn | None]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    waiting = iter(turns)
    for message in messages:
        content = content_of(message)
        last = steps[-1] if steps else None
        if message.role == "assistant":
            steps.append({"step_id": len(steps) + 1, **_agent_step(message, next(waiting), len(steps) + 1)})
        elif message.role == "user" and last and last["source"] == "agent" and "observation" not in last:
            call = {"source_call_id": last["tool_calls"][0]["tool_call_id"]} if "tool_calls" in last else {}
            last["observation"] = {"results": [{**call, "content": content}]}
        else:
            steps.append({"step_id": len(steps) + 1, "source": message.role, "message": content})
    return steps


def content_of(message: Message) -> str | list[dict[str, Any]]:
    """Text, or parts where the message has pictures."""
    if not message.images:
        return message.text
    parts: list[dict[str, Any]] = []
    texts = message.text.split(IMAGE)
    for text, image in zip(texts, [*message.images, ""], strict=True):
        if text:
            parts.append({"type": "text", "text": text})
        if image:
            path = f"{IMAGES}/{image.removeprefix('sha256:')}.png"
            parts.append({"type": "image", "source": {"media_type": "image/png", "path": path}})
    return parts


def _agent_step(message: Message, turn: Turn | None, number: int) -> dict[str, Any]:
    step: dict[str, Any] = {"source": "agent", "message": message.text}
    if calls := _calls(message):
        names = [f"call-{number}", *(f"call-{number}-{place}" for place in range(2, len(calls) + 1))]
        step["tool_calls"] = [
            {"tool_call_id": name, "function_name": TOOL, "arguments": arguments}
            for name, arguments in zip(names, calls, strict=True)
        ]
    if turn is not None and turn.completion is not None and turn.completion.token_ids:
        step["metrics"] = {
            "prompt_tokens": turn.completion.num_prompt_tokens,
            "completion_tokens": len(turn.completion.token_ids),
            "completion_token_ids": list(turn.completion.token_ids),
            "logprobs": list(turn.completion.behaviour_logprobs),
        }
    if not message.is_learned:
        step["extra"] = {"step_loss_mask": 0}
    return step


def _calls(message: Message) -> list[dict[str, Any]]:
    """The arguments of each call, coordinates in pixels; none for words without one."""
    try:
        return [call_arguments(action) for action in read_action(message.text, "").actions]
    except (ReadProblem, ValueError):
        return []


def call_arguments(action: Action) -> dict[str, Any]:
    """The same words as in our prompts. Raises ValueError for what they cannot say."""
    return json_arguments(action, lambda x, y: [x, y])
