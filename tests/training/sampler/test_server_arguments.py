"""What SGLang servers are started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from testing.training.tiny_model import tiny_folder
from training.contracts.config import parse_config
from training.sampler.sglang.parameter_names_file import read_names, write_names
from training.sampler.sglang.server_arguments import SglangInstallation, arguments_of, launch_of
from training.sampler.sglang.server_process import SglangServer, Weights

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


def seeds_of(tmp_path: Path, *, seed: int, attempt: int) -> list[str]:
    """What two servers are started with, twice each, by a stand-in that prints its arguments."""
    script = tmp_path / "python"
    script.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    script.chmod(0o755)
    config = parse_config({"engine": {"name": "sglang"}, "optimiser": {"seed": seed}})
    installation = SglangInstallation(python=str(script), python_path="", gpus=(), log_folder=tmp_path)
    launch = launch_of(config, str(tiny_folder()), installation, tmp_path, attempt)
    found = []
    for number, start in ((0, 0), (0, 1), (1, 0), (1, 1)):
        weights = Weights(folder="m", policy_version=0)
        server = SglangServer(launch, weights, number=number, gpus=(), start=start)
        server.process.wait(60)
        found += [line for line in server.tail().splitlines() if line.startswith("--random-seed=")]
    return found


def test_servers_starts_and_attempts_generate_other_random_numbers(tmp_path: Path):
    cases = [(0, 1), (0, 2), (1, 1)]
    found = [seed for case in cases for seed in seeds_of(tmp_path, seed=case[0], attempt=case[1])]
    assert len(found) == len(set(found)) == 12
    assert all(0 <= int(words.removeprefix("--random-seed=")) < 2**31 for words in found)
    assert seeds_of(tmp_path, seed=0, attempt=1) == found[:4], "and the same when repeated"
