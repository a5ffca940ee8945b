"""The layout tool-call is that of the agent with which a model's results on OSWorld were published.

The messages are asked of OSWorld's own package (`make osworld-env`, part of the tests' set-up).
"""

import json
import subprocess
from dataclasses import replace
from typing import Any

import pytest
import yaml

from testing.paths import REPOSITORY
from testing.training.tiny_model import renderer
from training.actions.dialects.registry import DIALECTS
from training.actions.parse_completion import parse_completion
from training.contracts.config import CoordinateSpace, PromptConfig
from training.planning.presets import load_preset
from training.render.history_window import SeenTurn
from training.render.prompts import action_words, first_text, system_text
from training.render.renderer import Renderer

PYTHON = REPOSITORY / ".venv-osworld" / "bin" / "python"
SCRIPT = REPOSITORY / "scripts" / "published_prompt.py"
SIZE = (256, 192)
INSTRUCTION = "Open the file {x}."
"""As in the script; braces must stay."""
REPLIES = [
    f"Action: Do thing {number}.\n<tool_call>\n"
    f'{{"name": "computer_use", "arguments": {{"action": "left_click", "coordinate": [{number}, 999]}}}}\n'
    "</tool_call>"
    for number in range(9)
]


def ask(*arguments: str, text: str = "") -> str:
    return subprocess.run(
        [PYTHON, SCRIPT, *arguments], input=text, capture_output=True, text=True, check=True, timeout=60
    ).stdout


@pytest.fixture(scope="module")
def published() -> Renderer:
    words = yaml.safe_load(ask())["prompt"]
    return renderer(
        style="tool-call",
        dialect="tool-call",
        coordinate_space=CoordinateSpace.RELATIVE,
        history="actions",
        keep_last_images=5,
        **words,
    )


OTHERS = {
    "ui-tars": (
        "Thought: Now {number}.\nAction: hotkey(key='ctrl {number}')",
        {"history": "window", "keep_first_images": 0, "keep_last_images": 5},
    ),
    "opencua": (
        "## Thought:\nNow {number}.\n\n## Action:\nPress {number}.\n\n"
        "## Code:\n```python\npyautogui.press('{number}')\n```",
        {"history": "window", "keep_first_images": 0, "keep_last_images": 3},
    ),
    "gui-owl": (
        "<thinking>Now {number}.</thinking><tool_call>\n"
        '{{"name": "computer_use", "arguments": {{"action": "key", "keys": ["{number}"]}}}}\n'
        "</tool_call><conclusion>Press {number}.</conclusion>",
        {"history": "actions", "keep_last_images": 1},
    ),
}
"""Dialect -> replies, and the history of its preset."""
THERE = [row.name for row in DIALECTS if row.name in OTHERS]
CALLS = [pair for pair in (("ui-tars", "left_double("), ("gui-owl", "coordinate2")) if pair[0] in THERE]


def as_template(message: dict[str, Any]) -> dict[str, Any]:
    """The message as chat templates take it."""
    if isinstance(message["content"], str):
        return message
    parts = [{"type": "image"} if part["type"] == "image_url" else part for part in message["content"]]
    return {"role": message["role"], "content": parts}


def assert_same_tokens(ours: Renderer, replies: list[str], dialect: str) -> list[SeenTurn]:
    """Every context is what the template makes of the agent's messages; returns the turns."""
    steps = json.loads(ask(dialect, "--replies", text="\n".join(map(json.dumps, replies))))
    assert len(steps) == len(replies)
    turns: list[SeenTurn] = []
    pads = "<|image_pad|>" * ours.image_tokens(SIZE).count(ours.image_pad_id)
    for messages, reply in zip(steps, replies, strict=True):
        turns.append(SeenTurn(text=INSTRUCTION if not turns else "a result", image_size=SIZE))
        text = ours.tokenizer.apply_chat_template(
            list(map(as_template, messages)), tokenize=False, add_generation_prompt=True
        )
        text = text.replace("<|image_pad|>", pads)
        assert ours.context(turns).token_ids == ours.tokenizer(text)["input_ids"]
        turns[-1] = replace(turns[-1], completion=tuple(ours.completion_ids(reply)))
    return turns


def test_every_step_has_the_tokens_of_the_published_agents_messages(published: Renderer) -> None:
    turns = assert_same_tokens(published, REPLIES, "tool-call")
    prompt_text = published.tokenizer.decode(published.context([*turns, turns[0]]).token_ids)
    assert "Step 5: Do thing 4.<|im_end|>" in prompt_text
    assert "Do thing 4.\n<tool_call>" not in prompt_text


@pytest.mark.parametrize("dialect", THERE)
def test_other_agents_have_their_own_layout(dialect: str) -> None:
    reply, history = OTHERS[dialect]
    words = yaml.safe_load(ask(dialect))["prompt"]
    preset = load_preset(f"osworld-{dialect}")
    assert preset is not None
    section = preset.config.prompt.model_dump()
    assert section | history == section
    ours = renderer(style="tool-call", dialect=dialect, **history, **words)
    assert_same_tokens(ours, [reply.format(number=number) for number in range(7)], dialect)


def test_a_published_completion_is_read_on_its_grid(published: Renderer) -> None:
    prompt = published.prompt
    parsed = parse_completion(
        REPLIES[0], dialect=prompt.dialect, space=prompt.coordinate_space, screen=(1920, 1080)
    )
    assert parsed.action is not None
    assert (parsed.action.x, parsed.action.y) == (0, 1079)
    assert parsed.thought == "Action: Do thing 0."


@pytest.mark.parametrize(("dialect", "call"), CALLS)
def test_other_agents_words_fit_their_presets(dialect: str, call: str) -> None:
    words = yaml.safe_load(ask(dialect))["prompt"]
    preset = load_preset(f"osworld-{dialect}")
    assert preset is not None
    prompt = PromptConfig.model_validate({**preset.config.prompt.model_dump(), **words})
    assert call in system_text(prompt) + first_text(prompt, "Open {it}.", ["Click."])
    assert "Open {it}." in first_text(prompt, "Open {it}.", [])


def test_an_agent_without_words_is_named() -> None:
    done = subprocess.run([PYTHON, SCRIPT, "keyboard"], capture_output=True, text=True, check=False)
    assert "keyboard: no published words are known; there are tool-call, evocua" in done.stderr


def test_without_the_published_words_the_layout_has_our_own() -> None:
    own = renderer(style="tool-call", history="actions", keep_last_images=1)
    first = SeenTurn(text="Save it.", completion=tuple(own.completion_ids("no call\nat all")))
    prompt_text = own.tokenizer.decode(own.context([first, SeenTurn(text="")]).token_ids)
    assert "<tool_call>" in prompt_text
    assert "Task: Save it.\n\nDone so far:\nStep 1: no call<|im_end|>" in prompt_text


@pytest.mark.parametrize(
    ("completion", "words"),
    [
        ("Thinking\naction: Click it. \n{}", "Click it."),
        ("{}", "{}"),
        ("", "nothing"),
        ("x" * 999, "x" * 300),
    ],
)
def test_what_a_completion_says_that_it_does(completion: str, words: str) -> None:
    assert action_words(completion) == words
