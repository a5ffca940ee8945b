"""Makes the fingerprint of a renderer: `training.contracts.context_fingerprint` says what it is for."""

import hashlib
import json
from typing import Any

from training.contracts.config import PromptConfig
from training.contracts.context_fingerprint import write_fingerprint


def fingerprint_of(tokenizer: Any, image_processor: Any, prompt: PromptConfig, sample: str) -> str:
    """The line for what a policy sees and writes.

    `sample`: a conversation as this renderer lays it out, decoded; it stands for the words of the prompt and
    the marks around messages.
    """
    return write_fingerprint(
        {
            "tokenizer": _digest(_encoding(tokenizer)),
            "template": _digest(sample),
            "style": prompt.style,
            "dialect": prompt.dialect,
            "coordinates": prompt.coordinate_space.value,
            "image": _image(image_processor) if prompt.shows_screen and image_processor else "none",
            "history": _history(prompt),
            **({"texts": _texts(prompt)} if prompt.reads_text else {}),
        }
    )


def _encoding(tokenizer: Any) -> str:
    """Vocabulary, merges, added tokens and how text is cut; padding and truncation change with every use."""
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    return json.dumps({**backend, "padding": None, "truncation": None}, sort_keys=True)


def _image(processor: Any) -> str:
    bounds = f"{processor.size['shortest_edge']}-{processor.size['longest_edge']}"
    return f"{bounds}/{processor.patch_size}x{processor.merge_size}x{processor.temporal_patch_size}"


def _history(prompt: PromptConfig) -> str:
    if prompt.history == "full":
        return "full"
    if prompt.history == "actions":
        return f"actions-{prompt.keep_last_images}-{prompt.window_slack}"
    return f"window-{prompt.keep_first_images}-{prompt.keep_last_images}-{prompt.window_slack}"


def _texts(prompt: PromptConfig) -> str:
    tree = f"{prompt.accessibility_form}-{prompt.accessibility_chars}" if prompt.reads_tree else "none"
    terminal = prompt.terminal_chars if prompt.reads_terminal else "none"
    marks = f"/marks-{prompt.accessibility_chars}" if prompt.reads_marks else ""
    return f"{tree}/{terminal}/{prompt.observation_every}{marks}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
