"""What SGLang servers are started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from testing.training.tiny_model import tiny_folder
from training.contracts.config import parse_config
from training.sampler.sglang.parameter_names_file import read_names, write_names
from training.sampler.sglang.server_arguments import arguments_of

FP32_HEAD = "--enable-fp32-lm-head"


def arguments(**model: object) -> list[str]:
    config = parse_config({"model": model, "engine": {"name": "sglang"}})
    return arguments_of(config, str(tiny_folder()))


def test_half_precision_servers_report_fp32_logits_as_the_trainer_does():
    assert FP32_HEAD in arguments(dtype="bfloat16")


def test_rounded_logits_are_rounded_on_both_sides():
    assert FP32_HEAD not in arguments(dtype="bfloat16", fp32_logits=False)


def test_fp32_servers_need_no_special_head():
    assert FP32_HEAD not in arguments(dtype="float32")


def test_the_servers_say_which_weights_they_have(tmp_path: Path):
    write_names(tmp_path, ["b.weight", "a.weight"])
    assert read_names(tmp_path) == ["a.weight", "b.weight"]
    assert [path.name for path in tmp_path.iterdir()] == ["parameters.json"]


def test_names_that_nobody_wrote_are_an_error(tmp_path: Path):
    with pytest.raises(OSError, match=r"parameters\.json"):
        read_names(tmp_path)
