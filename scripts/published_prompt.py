"""The prompt with which a model's results on OSWorld were published, as YAML: by default Qwen3-VL's.

    .venv-osworld/bin/python scripts/published_prompt.py > prompt.yaml
    .venv/bin/python manage.py launch --preset osworld-baseline --with prompt.yaml
    .venv-osworld/bin/python scripts/published_prompt.py ui-tars    # also opencua, gui-owl
    .venv-osworld/bin/python scripts/published_prompt.py evocua CHECKOUT    # of github.com/meituan/EvoCUA

The words are asked of the agents in OSWorld's own package (`make osworld-env`) or in the checkout, so none
of them is ours. With `--replies` (JSON lines on stdin, one reply of a model each) it prints the messages of
every step of that agent instead, which `tests/training/render/test_published_prompt.py` compares with ours.
"""

from __future__ import annotations

import copy
import importlib
import io
import json
import logging
import os
import runpy
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

AGENT = "mm_agents.qwen3vl_agent"
MAX_MISSING = 40
SIZE = (1280, 736)
"""Multiples of 32: the agent's resize leaves them as they are."""
NONE_YET = "None"
INSTRUCTION, PREVIOUS = "{instruction}", "{previous_actions}"
HELPFUL = "You are a helpful assistant."


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


def import_agent(agent: str = AGENT) -> ModuleType:
    """The package's module, whatever of its imports is not installed."""
    for _ in range(MAX_MISSING):
        try:
            return importlib.import_module(agent)
        except ModuleNotFoundError as error:
            name = str(error.name)
            if name.startswith(agent) or name == "mm_agents":
                sys.exit(f"{name} is not here: run `make osworld-env`, or name the author's checkout")
            module = Absent(name)
            if name.endswith("qwen_vl_utils"):
                module.smart_resize = same_size  # type: ignore[attr-defined]
            sys.modules[name] = module
    sys.exit(f"{agent} imports too much that is not installed")


class Client:
    """Stands for a vendor's: keeps what an agent asks, and answers with the replies in order."""

    def __init__(self, replies: list[str]) -> None:
        self.asked: list[list[dict[str, Any]]] = []
        self._replies = replies
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

    def call_llm(self, payload: dict[str, Any], model: str) -> str:
        self.asked.append(copy.deepcopy(payload["messages"]))
        return self._replies[len(self.asked) - 1]

    def _create(self, messages: list[dict[str, Any]], **_: object) -> SimpleNamespace:
        reply = self.call_llm({"messages": messages}, "")
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=reply))])


def make_qwen3_vl(client: Client) -> Any:
    module = import_agent()
    module.logger = logging.getLogger(AGENT)  # type: ignore[attr-defined]
    agent = module.Qwen3VLAgent()
    agent.call_llm = client.call_llm
    return agent


def make_ui_tars(client: Client) -> Any:
    module = import_agent("mm_agents.uitars15_v1")
    module.OpenAI = lambda **_: client  # type: ignore[attr-defined]
    os.environ |= {"DOUBAO_API_URL": "", "DOUBAO_API_KEY": ""}
    numbers = {"temperature": 0.0, "top_k": -1, "top_p": 0.9, "max_tokens": 500, "callusr_tolerance": 3}
    kinds = {"infer_mode": "qwen25vl_normal", "prompt_style": "qwen25vl_normal", "input_swap": False}
    kinds |= {"language": "English", "max_pixels": 12_845_056, "min_pixels": 78_400, "history_n": 5}
    return module.UITARSAgent(model="none", runtime_conf=numbers | kinds)


def make_opencua(client: Client) -> Any:
    module = import_agent("mm_agents.opencua.opencua_agent")
    module.logger = logging.getLogger("opencua")  # type: ignore[attr-defined]
    agent = module.OpenCUAAgent("none", "action_history", 99, coordinate_type="qwen25", password="password")
    agent.call_llm = client.call_llm
    return agent


def make_gui_owl(client: Client) -> Any:
    module = import_agent("mm_agents.owl_agent")
    module.OpenAI = lambda **_: client  # type: ignore[attr-defined]
    agent = module.OwlAgent("none")
    agent.image_format = "base64"
    return agent


MAKERS: dict[str, Callable[[Client], Any]] = {
    "tool-call": make_qwen3_vl,
    "ui-tars": make_ui_tars,
    "opencua": make_opencua,
    "gui-owl": make_gui_owl,
}


def messages_of_steps(instruction: str, replies: list[str], name: str) -> list[list[dict[str, Any]]]:
    """What the agent asks at each step when its model answers so; screenshots are blank."""
    from PIL import Image

    screen = io.BytesIO()
    Image.new("RGB", SIZE).save(screen, "PNG")
    client = Client(replies)
    agent = MAKERS[name](client)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # Qwen3-VL's agent keeps its messages in the working folder
        for _ in replies:
            agent.predict(instruction, {"screenshot": screen.getvalue()})
        os.chdir("/")
    return client.asked


def qwen3_vl() -> tuple[str, str]:
    """(system message, words beside the first screenshot) of its agent."""
    system, task = messages_of_steps(INSTRUCTION, [""], "tool-call")[0]
    head, none_yet, tail = words(task).rpartition(NONE_YET)
    if not none_yet:
        sys.exit(f"{AGENT} words its history in another way than this script knows")
    return words(system), head + PREVIOUS + tail


def evocua() -> tuple[str, str]:
    """Of its S2 form; its task has Qwen3-VL's words."""
    if len(sys.argv) < 3:
        sys.exit("name the checkout of github.com/meituan/EvoCUA, too")
    prompts = runpy.run_path(str(Path(sys.argv[2]) / "mm_agents" / "evocua" / "prompts.py"))
    info = "* The screen's resolution is 1000x1000."
    description = prompts["S2_DESCRIPTION_PROMPT_TEMPLATE"].format(resolution_info=info)
    tool = json.dumps(prompts["build_s2_tools_def"](description))
    return prompts["S2_SYSTEM_PROMPT"].format(tools_xml=tool), qwen3_vl()[1]


def ui_tars() -> tuple[str, str]:
    """It has no system message of its own: the chat template of its model adds one."""
    module = import_agent("mm_agents.uitars15_v1")
    task = module.UITARS_USR_PROMPT_THOUGHT.format(
        instruction=INSTRUCTION, action_space=module.UITARS_NORMAL_ACTION_SPACE, language="English"
    )
    return HELPFUL, task


def opencua() -> tuple[str, str]:
    """With thoughts, as its results were published."""
    prompts = import_agent("mm_agents.opencua.prompts")
    task = prompts.INSTRUTION_TEMPLATE.format(instruction=INSTRUCTION)
    return prompts.build_sys_prompt(level="l2", password="password"), task


def gui_owl() -> tuple[str, str]:
    """Its history is a list of what it concluded."""
    module = import_agent("mm_agents.owl_agent")
    system, task = module.get_prompt(0, 0, INSTRUCTION, PREVIOUS, engine="openai")
    return HELPFUL + words(system).removeprefix(HELPFUL), words(task)


AGENTS: dict[str, Callable[[], tuple[str, str]]] = {
    "tool-call": qwen3_vl,
    "evocua": evocua,
    "ui-tars": ui_tars,
    "opencua": opencua,
    "gui-owl": gui_owl,
}
"""Dialect -> its published words."""


def words(message: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in message["content"])


def block(text: str) -> str:
    """As a literal block of YAML."""
    ending = "" if text.endswith("\n") else "-"
    lines = "\n".join(f"    {line}" if line else "" for line in text.removesuffix("\n").split("\n"))
    return f"|2{ending}\n{lines}"


def main() -> None:
    sys.stdout, said = sys.stderr, sys.stdout  # the agent prints
    name = next((one for one in sys.argv[1:] if one != "--replies"), "tool-call")
    if name not in AGENTS:
        sys.exit(f"{name}: no published words are known; there are {', '.join(AGENTS)}")
    if "--replies" in sys.argv:
        replies = [json.loads(line) for line in sys.stdin]
        json.dump(messages_of_steps("Open the file {x}.", replies, name), said)
        return
    system, task = AGENTS[name]()
    said.write(f"prompt:\n  system_text: {block(system)}\n")
    said.write(f"  task_text: {block(task)}\n")


if __name__ == "__main__":
    main()
