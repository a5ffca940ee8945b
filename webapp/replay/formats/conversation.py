"""The spellings of a conversation that files have -> messages of text, with their screenshots.

`messages` or `conversations`, as a list or as JSON text; {role, content} or {from, value}; content as text
with `<image>` marks, or as a list of parts; images beside the messages (null, texts, {bytes, path}) or inside
parts; an assistant's call in its text, or beside it as OpenAI has it.
"""

import json
from base64 import b64encode
from dataclasses import dataclass
from typing import Any

from webapp.lib.request_values import read_json, shortened

IMAGE = "<image>"
ROLES = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human", "tool", "observation", "function"), "user"),
    **dict.fromkeys(("assistant", "gpt", "model", "bot"), "assistant"),
}
"""Every name -> ours."""
PICTURES = ("image", "image_url", "input_image")
TEXTS = ("text", "input_text", "output_text")
INSIDE = ("image_url", "image", "url", "bytes", "data")
"""Keys under which a part holds its picture."""


class ReadProblem(ValueError):
    """Raised when a field of a line cannot be read."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}" if where else what)


@dataclass(frozen=True, slots=True)
class Message:
    place: int
    role: str
    """system, user or assistant."""
    text: str
    """With an `<image>` where each of `images` stands."""
    images: tuple[str, ...]
    """As data URLs, base64, or `sha256:` names."""
    is_learned: bool = True
    """Of an assistant's message: `step_loss_mask` is not 0."""


def read_conversation(data: dict[str, Any]) -> list[Message]:
    """The messages of a line. Raises ReadProblem."""
    raw = as_json(data.get("messages") or data.get("conversations"), "messages")
    if not isinstance(raw, list) or not raw:
        raise ReadProblem("messages", "missing or not a list")
    waiting = read_images(data)
    messages = [_message(place, message, waiting) for place, message in enumerate(raw)]
    if waiting:
        raise ReadProblem("images", f"{len(waiting)} more than the messages have <image> marks")
    return messages


def as_json(value: Any, field: str) -> Any:
    """A value that may be JSON text, as tables hold nested ones."""
    return read_json(value, field) if isinstance(value, str) and value else value


def read_images(data: dict[str, Any]) -> list[str]:
    """What stands beside the messages; null and absent are none. Raises ReadProblem."""
    images = data.get("images") or [data[name] for name in ("image",) if data.get(name)]
    if isinstance(images, str) and images.lstrip().startswith("["):
        images = as_json(images, "images")
    if not isinstance(images, list):
        raise ReadProblem("images", "not a list")
    return [_image(image, f"images[{place}]") for place, image in enumerate(images)]


def _image(value: Any, where: str) -> str:
    """Text of one image: itself, a {"url"}, or a table's {"bytes", "path"}."""
    if isinstance(value, dict):
        value = value.get("url") or value.get("bytes") or value.get("image") or value.get("data")
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if not isinstance(value, str) or not value:
        raise ReadProblem(where, "not a string, and no bytes or url in it")
    return value


def _message(place: int, message: Any, waiting: list[str]) -> Message:
    where = f"messages[{place}]"
    if not isinstance(message, dict):
        raise ReadProblem(where, "not an object with role and content")
    role = ROLES.get(str(message.get("role") or message.get("from") or "").lower(), "")
    if not role:
        raise ReadProblem(f"{where}.role", "not system, user or assistant")
    content = message.get("content", message.get("value"))
    call = _call(message, where) if role == "assistant" else ""
    if content is None and call:
        content = ""
    text, images = _content(content, where, waiting if role == "user" else None)
    text = "\n".join(filter(None, (text, call)))
    is_learned = _loss_mask(message, where)
    return Message(place, role, text, images, is_learned)


def _call(message: dict[str, Any], where: str) -> str:
    """OpenAI's `tool_calls`, or the older `function_call`, as the text that a model writes for it."""
    name = "tool_calls" if message.get("tool_calls") else "function_call"
    call = as_json(message.get(name), f"{where}.{name}")
    at = f"{where}.{name}"
    if isinstance(call, list) and len(call) == 1:
        call, at = call[0], f"{at}[0]"
    if not call:
        return ""
    if isinstance(call, list):
        raise ReadProblem(at, f"{len(call)} calls; one action per turn")
    function = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise ReadProblem(at, "no function with a name and arguments")
    arguments = as_json(function.get("arguments"), f"{at}.arguments")
    if not isinstance(arguments, dict):
        raise ReadProblem(f"{at}.arguments", "not an object")
    body = json.dumps({"name": function["name"], "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{body}\n</tool_call>"


def _content(content: Any, where: str, waiting: list[str] | None) -> tuple[str, tuple[str, ...]]:
    """(text with marks, its images); `waiting` None: marks are mere words, and pictures are refused."""
    if not isinstance(content, str | list):
        raise ReadProblem(f"{where}.content", "neither text nor a list of parts")
    parts: list[Any] = content if isinstance(content, list) else [content]
    texts: list[str] = []
    images: list[str] = []
    for number, part in enumerate(parts):
        at = f"{where}.content[{number}]" if isinstance(content, list) else where
        kind, value = _part(part, at)
        if kind == "text":
            texts.append(value)
            images += [_next(waiting, at) for _ in range(value.count(IMAGE))] if waiting is not None else []
        elif waiting is None:
            raise ReadProblem(at, "a picture in a message that is not the user's")
        else:
            images.append(value or _next(waiting, at))
            texts.append(IMAGE)
    return "\n".join(texts), tuple(images)


def _part(part: Any, where: str) -> tuple[str, str]:
    """("text", it) or ("image", itself, "" = the next one beside the messages)"""
    if isinstance(part, str):
        return "text", part
    if not isinstance(part, dict):
        raise ReadProblem(where, "neither text nor a part with a type")
    kind = part.get("type") or ("text" if "text" in part else "image")
    if kind in TEXTS:
        if not isinstance(part.get("text"), str):
            raise ReadProblem(where, "its text is no text")
        return "text", part["text"]
    if kind in PICTURES:
        inside = next((part[key] for key in INSIDE if part.get(key)), None)
        return "image", _image(inside, where) if inside else ""
    raise ReadProblem(where, f"type {shortened(kind)} is neither text nor image")


def _next(waiting: list[str], where: str) -> str:
    if not waiting:
        raise ReadProblem(where, "has more <image> marks than there are images")
    return waiting.pop(0)


def _loss_mask(message: dict[str, Any], where: str) -> bool:
    """Whether an assistant message is learned: `step_loss_mask` of 0 or 1, absent = 1. Raises ReadProblem."""
    mask = message.get("step_loss_mask", 1)
    if mask not in (0, 1):
        raise ReadProblem(f"{where}.step_loss_mask", f"not 0 or 1: {mask!r}")
    return bool(mask)


def without_images(data: dict[str, Any]) -> list[Any]:
    """The messages as they came, without the pictures inside: those stand beside them."""
    raw = as_json(data.get("messages") or data.get("conversations"), "messages")
    return [_without_images(message) for message in raw]


def _without_images(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = [
        {"type": part.get("type", "image")} if isinstance(part, dict) and any(map(part.get, INSIDE)) else part
        for part in content
    ]
    return {**message, "content": parts}
