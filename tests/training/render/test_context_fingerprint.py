"""What made a completion's token ids: equal for equal settings, named where they differ."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from testing.training.sample_values import make_turn
from testing.training.tiny_model import renderer, tiny_folder
from training.actions.dialects.registry import find_dialect
from training.content.recipes.tiny.make_checkpoint import TinySizes, make_tiny
from training.contracts.config import ModelConfig, PromptConfig
from training.contracts.context_fingerprint import differences, shared_fingerprint
from training.render.renderer import Renderer


def fingerprint(folder: Path | None = None, *, model: dict | None = None, **prompt: object) -> str:
    config = ModelConfig(**(model or {}))
    return Renderer.from_folder(folder or tiny_folder(), config, PromptConfig(**prompt)).fingerprint


def test_a_copy_of_the_folder_and_a_used_tokenizer_change_nothing(tmp_path: Path) -> None:
    used = renderer()
    used.tokenizer(["short", "a longer text"], padding=True, truncation=True, max_length=2)
    shutil.copytree(tiny_folder(), tmp_path / "copy")
    assert used.fingerprint == fingerprint() == fingerprint(tmp_path / "copy")
    assert differences(fingerprint(), fingerprint()) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"style": "computer-use"}, ["another prompt style"]),
        ({"dialect": "pyautogui"}, ["another action dialect"]),
        ({"coordinate_space": "screen"}, ["another coordinate space"]),
        ({"observation": []}, ["other image limits"]),
        ({"history": "window"}, ["another history setting"]),
        ({"model": {"max_pixels": 12288}}, ["other image limits"]),
    ],
)
def test_every_setting_that_shapes_the_context_is_named(changes: dict, words: list[str]) -> None:
    assert differences(fingerprint(), fingerprint(**changes)) == words


def test_another_vocabulary_is_another_tokenizer(tmp_path: Path) -> None:
    small = make_tiny(tmp_path / "small", seed=0, sizes=TinySizes(vocabulary=448))
    assert differences(fingerprint(), fingerprint(small)) == ["another tokenizer"]


def test_the_wording_of_the_prompt_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(style="computer-use")
    row = replace(find_dialect("auto"), prompt="You operate a computer. {coordinates}")
    monkeypatch.setattr("training.render.prompts.find_dialect", lambda name: row)
    assert differences(before, fingerprint(style="computer-use")) == ["another wording of the prompt"]


def test_unknown_differs_from_everything() -> None:
    assert differences("", fingerprint()) == differences("", "") == ["unknown tokenizer and prompt"]
    one, other, unknown = (make_turn(fingerprint=line) for line in ("a", "b", ""))
    assert shared_fingerprint([one, make_turn(completion=None), one]) == "a"
    assert (
        shared_fingerprint([one, other]) == shared_fingerprint([one, unknown]) == shared_fingerprint([]) == ""
    )
