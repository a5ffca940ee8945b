"""The batch of a step, made of toy groups and replay entries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.training.conftest import toy_config
from training.contracts.types import Group
from training.render.renderer import Renderer
from training.rollouts.picture_check import PictureCheck
from training.rollouts.replay_injection import ReplayState
from training.rollouts.step_batch import StepBatch, build_step_batch

VOCABULARY = 400


@pytest.fixture
def prepare(toy_model: Path, toy_renderer: Renderer):
    def prepare(
        groups: list[Group],
        entries: tuple = (),
        policy_version: int = 3,
        png: Callable[[str], bytes] | None = None,
        **sections: dict,
    ) -> StepBatch:
        config = toy_config(toy_model, **sections)
        return build_step_batch(
            groups,
            Renderer(toy_renderer.tokenizer, toy_renderer.image_processor, config.prompt),
            config,
            candidates=lambda _: entries,
            replay=ReplayState(),
            policy_version=policy_version,
            vocabulary=VOCABULARY,
            pictures=PictureCheck(png) if png else None,
        )

    return prepare
