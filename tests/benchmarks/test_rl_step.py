"""`benchmarks.gpu.rl_step`: what it counts, and that it measures a whole experiment at toy size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu.flops import Work, forward_flops
from benchmarks.gpu.rl_step import Bars, arms_of, better_split, parse_split, problems_of
from benchmarks.gpu.rl_step_arm import Arm, Scale
from benchmarks.gpu.rl_step_figures import overlap
from benchmarks.gpu.rl_step_screens import Screens
from benchmarks.gpu.rl_step_world import WIDGETS, widgets
from benchmarks.gpu.sizes import OTHER_FAMILIES, SIZES
from training.planning.model_shape import shape_of

REPOSITORY = Path(__file__).resolve().parents[2]


def test_a_sync_holds_the_engine_only_while_a_turn_waits():
    syncs = [(1.0, 2.0), (5.0, 6.0)]
    turns = [(0.0, 1.25), (1.5, 1.75), (1.5, 3.0), (7.0, 8.0)]
    assert overlap(syncs, turns, 0.0, 10.0) == pytest.approx(0.75)
    assert overlap(syncs, turns, 1.75, 10.0) == pytest.approx(0.25)
    assert overlap(syncs, turns, 0.0, 1.1) == pytest.approx(0.1)
    assert overlap([], turns, 0.0, 10.0) == 0.0


def test_the_better_split_gives_the_slower_side_more_gpus():
    arm = Arm(trainers=4, engines=4)
    balanced = {"train_s": 10.0, "wait_s": 10.0, "sync_s": 0.5}
    assert better_split(balanced, arm) == "4+4"
    assert better_split(balanced | {"wait_s": 5.0}, arm) == "5+3"
    assert better_split(balanced | {"wait_s": 30.0}, arm) == "2+6"


def test_splits_are_read():
    assert parse_split("4+2").name == "4+2, in turns"
    colocated = parse_split("8@4")
    assert (colocated.placement, colocated.num_gpus) == ("colocated", 8)
    with pytest.raises(ValueError, match="four"):
        parse_split("four")


def test_a_colocated_engine_stays_awake_in_a_run_that_samples_ahead():
    def engines(split: str, *staleness: int) -> list[tuple[str, object]]:
        scale = Scale(size="2b")
        arms = arms_of(split, staleness)
        return [(arm.name, scale.config(arm, Path("model"))["engine"].get("sleeps")) for arm in arms]

    assert engines("1@1", 0) == [("1+1, colocated, in turns", True)]
    assert engines("1@1", 0, 2) == [
        ("1+1, colocated, awake, in turns", False),
        ("1+1, colocated, awake, staleness 2", False),
    ]
    assert engines("2+2", 1) == [("2+2, staleness 1", None)]


def row(arm: str, **values: object) -> dict:
    good = {
        "arm": arm,
        "sync_s": 0.5,
        "fell_back": 0.0,
        "errors": [],
        "trainer_busy": 0.9,
        "engine_busy": 0.9,
    }
    return good | values


def test_only_the_better_split_must_keep_both_sides_busy():
    found = {
        "a": row("4+4, staleness 1", engine_busy=0.5),
        "b": row("5+3, staleness 1"),
        "c": row("4+4, in turns", trainer_busy=0.4),
    }
    assert problems_of(found, Bars()) == []
    found["b"]["trainer_busy"] = 0.8
    assert problems_of(found, Bars()) == ["5+3, staleness 1: trainer busy 80.0%, the bar is 85%"]


def test_sides_that_share_a_gpu_are_no_split():
    found = {"a": row("4+4, staleness 1", engine_busy=0.5), "b": row("1+1, colocated, awake, staleness 1")}
    assert problems_of(found, Bars()) == ["4+4, staleness 1: engine busy 50.0%, the bar is 85%"]
    del found["a"]
    found["b"]["engine_busy"] = 0.5
    assert problems_of(found, Bars()) == []


def test_a_slow_sync_a_sync_by_disk_and_a_failed_trajectory_are_missed_bars():
    found = {"a": row("4+4, in turns", sync_s=2.5, fell_back=1.0, errors=["run1-1-1: gone"])}
    assert [words.partition(": ")[2][:12] for words in problems_of(found, Bars())] == [
        "a weight syn", "1 syncs went", "trajectories",
    ]  # fmt: skip
    assert problems_of({"a": {"arm": "4+4, in turns", "error": "no GPU"}}, Bars()) == ["a: no GPU"]


def test_members_share_the_first_screen_and_no_other(tmp_path: Path):
    members, turns = 3, 4
    count = 2 * (1 + members * (turns - 1))
    screens = Screens(folder=tmp_path, digests=tuple(f"{n:064x}" for n in range(count)), size=(8, 8))
    for digest in screens.digests:
        (tmp_path / digest[:2]).mkdir(exist_ok=True)
        (tmp_path / digest[:2] / f"{digest}.png").write_bytes(b"png")
    shown = [
        [
            screens.of(group, member, turn, members=members, turns=turns)[0]
            for member in range(members)
            for turn in range(turns)
        ]
        for group in range(2)
    ]
    assert not set(shown[0]) & set(shown[1])
    for of_group in shown:
        firsts = of_group[::turns]
        assert len(set(firsts)) == 1
        assert len(set(of_group)) == 1 + members * (turns - 1)


@pytest.mark.parametrize("name", OTHER_FAMILIES.values())
def test_a_token_costs_two_operations_for_each_weight_of_the_blocks(name: str):
    from benchmarks.gpu.models import make_config

    shape = shape_of(make_config(name).to_dict())
    found = forward_flops(SIZES[name], Work(lengths=[100], patches=[], scored=1))
    assert found["text_linear"] == pytest.approx(200 * shape.blocks, rel=0.002)
    assert (found["text_state"] > 0) is (shape.state_layers > 0)


def test_a_model_without_eyes_reads_widgets_instead_of_screens():
    text, sees = (Scale(size=name, shows=SIZES[name].sees) for name in ("qwen3-4b", "qwen2.5-vl-7b"))
    assert text.config(Arm(trainers=1, engines=1), Path("m"))["prompt"]["observation"] == ["accessibility"]
    assert "observation" not in sees.config(Arm(trainers=1, engines=1), Path("m"))["prompt"]
    assert sees.grid == (94, 52), "1312 x 736 in multiples of 28"
    assert widgets("ab" * 32).count("\n") == WIDGETS - 1
    assert widgets("ab" * 32) != widgets("cd" * 32)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("chosen", "split"),
    [
        (("--splits", "2+1"), "2+1"),
        (("--splits", "1@1", "--engine", "sglang"), "1+1, colocated, awake"),
    ],
)
def test_both_arms_are_measured_at_toy_size(chosen: tuple[str, ...], split: str, tmp_path: Path):
    """Real trainer processes, a real policy server (with transformers or the stand-in), syncs each step."""
    arguments = ("--tiny", *chosen, "--staleness", "0", "1", "--steps", "2")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu.rl_step", *arguments, "--results", str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    record = json.loads((tmp_path / "rl_step.json").read_text())
    assert record["passed"]
    arms = record["figures"]["arms"]
    assert set(arms) == set(record["figures"]["judged"])
    assert set(arms) == {f"tiny: {split}, in turns", f"tiny: {split}, staleness 1"}
    groups = 2 * int(split[0])
    for name, figures in arms.items():
        assert figures["trajectories"] == groups * 2, "two steps of a group of two for each trainer"
        assert figures["turns_per_s"] * figures["wall_s"] == pytest.approx(groups * 2 * 2)
        assert 0 < figures["trainer_busy"] < 1
        assert 0 <= figures["engine_busy"] < 1
        ages = [
            point["async/staleness_max"] for point in figures["by_step"].values() if "loss/total" in point
        ]
        assert ages[-1] == ("staleness" in name), "the last step trains on what the version before generated"
