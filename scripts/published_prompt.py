"""The computer-use prompt with which Qwen3-VL's results on OSWorld were published, as YAML.

    .venv-osworld/bin/python scripts/published_prompt.py > prompt.yaml
    .venv/bin/python manage.py launch --preset osworld-baseline --with prompt.yaml

The words are asked of the agent in OSWorld's own package (`make osworld-env`), so none of them is ours. With
`--replies` (JSON lines on stdin, one reply of a model each) it prints the messages of every step instead,
which `tests/training/render/test_published_prompt.py` compares with ours token by token.
"""

from __future__ import annotations

import importlib
import io
import json
import logging
import os
import sys
import tempfile
from types import ModuleType
from typing import Any

AGENT = "mm_agents.qwen3vl_agent"
MAX_MISSING = 40
SIZE = (1280, 736)
"""Multiples of 32: the agent's resize leaves them as they are."""
NONE_YET = "None"


class Absent(ModuleType):
    """Stands for a client library of a vendor, which is not needed to word a prompt."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return keep_as_it_is if name.startswith("on_") else Exception


def keep_as_it_is(*args: object, **keywords: object) -> Any:
    """A decorator's maker."""
    return lambda function: function


def same_size(height: int, width: int, **bounds: int) -> tuple[int, int]:
    return height, width


def import_agent() -> ModuleType:
    """The package's module, whatever of its imports is not installed."""
    for _ in range(MAX_MISSING):
        try:
            return importlib.import_module(AGENT)
        except ModuleNotFoundError as error:
            name = str(error.name)
            if name.startswith(AGENT) or name == "mm_agents":
                sys.exit("OSWorld's package is not installed here: run `make osworld-env`")
            module = Absent(name)
            if name.endswith("qwen_vl_utils"):
                module.smart_resize = same_size  # type: ignore[attr-defined]
            sys.modules[name] = module
    sys.exit(f"{AGENT} imports too much that is not installed")


def messages_of_steps(instruction: str, replies: list[str]) -> list[list[dict[str, Any]]]:
    """What the agent asks at each step when its model answers so; screenshots are blank."""
    from PIL import Image

    module = import_agent()
    module.logger = logging.getLogger(AGENT)  # type: ignore[attr-defined]
    asked: list[list[dict[str, Any]]] = []

    class Agent(module.Qwen3VLAgent):  # type: ignore[name-defined, misc]
        def call_llm(self, payload: dict[str, Any], model: str) -> str:
            asked.append(payload["messages"])
            return replies[len(asked) - 1]

    screen = io.BytesIO()
    Image.new("RGB", SIZE).save(screen, "PNG")
    agent = Agent()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the agent keeps its messages in the working folder
        for _ in replies:
            agent.predict(instruction, {"screenshot": screen.getvalue()})
        os.chdir("/")
    return asked


def words(message: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in message["content"])


def block(text: str) -> str:
    """As a literal block of YAML."""
    lines = "\n".join(f"    {line}".rstrip() for line in text.split("\n"))
    return f"|2-\n{lines}"


def main() -> None:
    sys.stdout, said = sys.stderr, sys.stdout  # the agent prints
    if "--replies" in sys.argv:
        replies = [json.loads(line) for line in sys.stdin]
        json.dump(messages_of_steps("Open the file {x}.", replies), said)
        return
    system, task = messages_of_steps("{instruction}", [""])[0]
    head, none_yet, tail = words(task).rpartition(NONE_YET)
    if not none_yet:
        sys.exit(f"{AGENT} words its history in another way than this script knows")
    said.write(f"prompt:\n  system_text: {block(words(system))}\n")
    said.write(f"  task_text: {block(head + '{previous_actions}' + tail)}\n")


if __name__ == "__main__":
    main()
