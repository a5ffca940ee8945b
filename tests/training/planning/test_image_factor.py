"""The grid of a model's pictures comes from its folder; completions are read on the same."""

import json

import pytest

from training.actions.coordinates import resized_size
from training.planning.model_families import image_factor


@pytest.mark.parametrize(
    ("config", "factor"),
    [
        ({"vision_config": {"patch_size": 14, "spatial_merge_size": 2}}, 28),
        ({"vision_config": {"patch_size": 16, "spatial_merge_size": 2}}, 32),
        ({"model_type": "qwen3"}, None),
    ],
)
def test_the_factor_is_what_the_folder_says(tmp_path, config: dict, factor: int | None) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert image_factor(tmp_path) == factor
    assert image_factor(tmp_path / "nothing") is None


def test_the_factors_of_qwen_give_different_grids() -> None:
    sizes = {resized_size((1920, 1080), 3136, 12_845_056, factor) for factor in (28, 32)}
    assert sizes == {(1932, 1092), (1920, 1088)}
