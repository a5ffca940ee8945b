"""The whole trainer against a coordinator over HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testing.small_disk import leave_free, make_room, small_disk
from testing.training.toy_coordinator import ToyCoordinator
from tests.training.conftest import toy_config
from training.contracts.config import ExperimentConfig, to_yaml
from training.contracts.trainer_exit import ExitCode
from training.contracts.types import Action, ActionKind, Control, Purpose, Source, Trajectory
from training.loop import checkpoint_room
from training.loop.train import main
from training.rollouts.task_order import TaskOrder

REPOSITORY = Path(__file__).resolve().parents[3]

Run = Callable[[ExperimentConfig], int]
TOY_SFT: dict[str, object] = {
    "enabled": True,
    "demonstrations_per_family": 2,
    "max_steps": 20,
    "evaluate_every": 10,
    "muon_learning_rate": 0,
    "learning_rate": 1e-2,
}


def arguments(config: ExperimentConfig, output: Path) -> list[str]:
    """The trainer's command line for a config."""
    output.mkdir(parents=True, exist_ok=True)
    (output / "config.yaml").write_text(to_yaml(config))
    return ["--config", str(output / "config.yaml"), "--output", str(output)]


def start_process(
    config: ExperimentConfig, output: Path, coordinator: ToyCoordinator, *, processes: int
) -> subprocess.Popen:
    """The trainer by its launcher, as the gpu worker starts it."""
    launcher = [sys.executable, "-m", "training.distributed.launch", "--ranks", str(processes)]
    return subprocess.Popen(
        [*launcher, "-m", "training.loop.train", *arguments(config, output)],
        cwd=REPOSITORY,
        env=os.environ | coordinator.environment() | {"DESKHAND_TORCH_THREADS": "1"},
        stdout=(output / "log").open("w"),
        stderr=subprocess.STDOUT,
    )


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def train(coordinator: ToyCoordinator, output: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the trainer in this process; returns its exit code."""
    for name, value in (coordinator.environment() | {"DESKHAND_TORCH_THREADS": "1"}).items():
        monkeypatch.setenv(name, value)
    handler = signal.getsignal(signal.SIGTERM)

    def run(config: ExperimentConfig) -> int:
        try:
            return main(arguments(config, output))
        finally:
            signal.signal(signal.SIGTERM, handler)

    return run


def outcome(output: Path) -> dict:
    return json.loads((output / "outcome.json").read_text())


def test_an_experiment_runs_all_its_stages_and_reports_them(
    toy_model: Path, coordinator: ToyCoordinator, train: Run, output: Path
) -> None:
    assert train(toy_config(toy_model, evaluation={"num_tasks": 4})) == 0
    stages = [(stage["name"], stage["status"]) for stage in coordinator.seen["/stage"]]
    assert stages == [
        (name, status)
        for name in ("evaluation-before", "grpo", "evaluation-after")
        for status in ("started", "finished")
    ]
    assert len(coordinator.metric("loss/policy")) == 3
    assert len(coordinator.metric("sync/drift")) == 4, "one at the start, one after each step"
    assert max(coordinator.metric("sync/drift")) < 1e-4
    found = [(one["name"], one["temperature"]) for one in coordinator.seen["/evaluations"]]
    assert found == [("before", 1.0), ("before", 0.0), ("after", 1.0), ("after", 0.0)]
    assert [group.task.family for group in coordinator.groups if group.step == 1] == ["odd", "round"]
    assert outcome(output) == {"exit_code": 0, "status": "finished", "step": 3, "message": ""}


def test_an_evaluation_is_added_to_the_checkpoint_of_its_step(
    toy_model: Path, coordinator: ToyCoordinator, train: Run, output: Path
) -> None:
    """A full one of a real size is tens of GB: the same weights are not written twice."""
    config = toy_config(toy_model, evaluation={"num_tasks": 4}, checkpoints={"every": 100})
    coordinator.wishes.pause_after_groups = 9
    assert train(config) == 75
    seen = coordinator.seen["/checkpoints"]
    start = "00001-grpo-000000"
    assert [Path(one["path"]).name for one in seen] == [start] * 3, "at the start, evaluated, paused"
    assert [one["is_best"] for one in seen] == [False, True, True]
    assert seen[0]["success"] is None
    assert seen[1]["success"] == seen[2]["success"] == coordinator.seen["/evaluations"][0]["success"]
    coordinator.wishes.pause_after_groups = 0
    assert train(config) == 0
    folders = sorted(folder.name for folder in (output / "checkpoints").iterdir())
    assert folders == [start, "00002-grpo-000003"]
    last = json.loads((output / "checkpoints" / folders[-1] / "state.json").read_text())
    assert last["was_evaluated_after"]
    assert len(coordinator.seen["/evaluations"]) == 4, "none is repeated after the pause"


@pytest.mark.parametrize(("command", "code"), [(Control.RUN, 0), (Control.CANCEL, ExitCode.CANCELLED)])
def test_a_checkpoint_waits_for_room_or_for_the_cancel(
    toy_model: Path,
    coordinator: ToyCoordinator,
    train: Run,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Control,
    code: int,
) -> None:
    monkeypatch.setattr(checkpoint_room, "POLL_S", 0.0)
    coordinator.wishes.command = command
    coordinator.wishes.shortages = iter(["checkpoints: 1.0 GB missing"] * 3)
    assert train(toy_config(toy_model)) == code
    asked = coordinator.seen["/checkpoints/room"]
    saved = sorted(folder.name for folder in (output / "checkpoints").glob("[0-9]*"))
    if command is Control.CANCEL:
        assert (len(asked), saved) == (1, [])
    else:
        assert len(asked) == 3 + len(coordinator.seen["/checkpoints"])
        assert saved
    assert asked[0]["num_bytes"] > 0


def test_the_last_checkpoint_is_written_again_when_the_disk_had_no_room_for_it(
    toy_model: Path, coordinator: ToyCoordinator, train: Run, output: Path
) -> None:
    with small_disk(output / "checkpoints", 200) as disk:

        def find_room() -> Iterator[str]:
            """Of the third and last one the disk takes a part; then there is room again."""
            yield from ("", "")
            leave_free(disk, 50_000)
            yield ""
            make_room(disk)

        coordinator.wishes.shortages = find_room()
        assert train(toy_config(toy_model)) == 0
        assert len(coordinator.seen["/checkpoints/room"]) == 4
        saved = ["00001-grpo-000000", "00002-grpo-000002", "00004-grpo-000003"]
        assert sorted(folder.name for folder in disk.iterdir()) == saved
        assert [Path(one["path"]).name for one in coordinator.seen["/checkpoints"]] == saved


def test_a_policy_learns_and_its_engine_follows(
    toy_model: Path, coordinator: ToyCoordinator, train: Run
) -> None:
    config = toy_config(
        toy_model,
        sampling={"temperature": 0.3},
        algorithm={"num_steps": 12, "group_size": 8},
        optimiser={"learning_rate": 2e-3, "microbatch_size": 16},
        checkpoints={"every": 100},
    )
    coordinator.desktops.num_turns, coordinator.desktops.max_tokens = 1, 2
    assert train(config) == 0
    rewards = coordinator.metric("rollout/reward_mean")
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.3
    assert max(coordinator.metric("policy/logprob_gap")) < 1e-3, (
        "the engine sampled with the trainer's weights"
    )
    assert coordinator.metric("async/staleness_max") == [0.0] * 12


def test_a_paused_experiment_resumes_where_it_stopped(
    toy_model: Path, coordinator: ToyCoordinator, train: Run, output: Path
) -> None:
    config = toy_config(toy_model, algorithm={"num_steps": 4})
    coordinator.wishes.pause_after_groups = 5
    assert train(config) == 75
    paused = outcome(output)
    assert (paused["status"], paused["step"]) == ("paused", 2)
    asked = len(coordinator.groups)
    coordinator.wishes.pause_after_groups = 0
    assert train(config) == 0
    steps = [point["step"] for point in coordinator.seen["/metrics"] if "loss/policy" in point["values"]]
    assert steps == [1, 2, 3, 4]
    assert [group.step for group in coordinator.groups[asked:]] == [3, 3, 4, 4]
    assert coordinator.seen["/weights"][-1]["policy_version"] == 4
    assert [one["step"] for one in coordinator.seen["/checkpoints/resumed"]] == [2]


def test_with_staleness_the_next_step_is_sampled_while_this_one_trains(
    toy_model: Path, coordinator: ToyCoordinator, train: Run
) -> None:
    assert train(toy_config(toy_model, algorithm={"max_staleness": 1})) == 0
    assert coordinator.metric("async/staleness_max") == [0.0, 1.0, 1.0]
    assert [group.step for group in coordinator.groups] == [1, 1, 2, 2, 3, 3]
    order = TaskOrder(coordinator.tasks["train"], seed=0).take(0, 6)
    assert [group.task for group in coordinator.groups] == order


@pytest.mark.timeout(600)
def test_trajectories_go_on_under_new_weights_while_the_trainer_trains(
    toy_model: Path, coordinator: ToyCoordinator, train: Run
) -> None:
    desktops, engine = coordinator.desktops, coordinator.desktops.engine
    coordinator.wishes.in_background = True

    def wait_for_a_sync(turn_index: int) -> None:
        """The second turn of a group of step s is generated by version s or later."""
        step = len(coordinator.groups) // 2
        while turn_index == 1 and engine.policy_version < step:
            time.sleep(0.05)

    desktops.before_turn = wait_for_a_sync
    algorithm = {"max_staleness": 2, "num_steps": 3, "skip_zero_variance": False}
    assert train(toy_config(toy_model, algorithm=algorithm)) == 0
    oldest = coordinator.metric("async/staleness_max")
    assert len(oldest) == 3
    assert max(oldest) in (1.0, 2.0), "within the bound"
    assert coordinator.metric("async/dropped") == [0.0] * 3
    spanning = [
        [turn.completion.policy_version for turn in member.turns if turn.completion]
        for group in coordinator.groups[2:]
        for member in group.trajectories
    ]
    assert sum(first < second for first, second in spanning) >= len(spanning) // 2
    assert max(coordinator.metric("sync/drift")) < 1e-4
    assert len(coordinator.metric("async/trainer_wait_s")) == 3


def test_a_cancelled_experiment_ends_at_once(
    toy_model: Path, coordinator: ToyCoordinator, train: Run, output: Path
) -> None:
    coordinator.wishes.command = Control.CANCEL
    assert train(toy_config(toy_model)) == 76
    assert outcome(output)["status"] == "cancelled"
    assert coordinator.metric("loss/policy") == []


def test_a_group_with_one_valid_member_is_asked_for_again(
    toy_model: Path, coordinator: ToyCoordinator, train: Run
) -> None:
    coordinator.wishes.errored_members = 3
    assert train(toy_config(toy_model, algorithm={"num_steps": 1})) == 0
    assert len(coordinator.groups) == 4, "two groups and their second request"
    updated = {member["trajectory_id"] for member in coordinator.seen["/members"][0]}
    scored = {one.trajectory_id for group in coordinator.groups[2:] for one in group.scored()}
    assert updated == scored


def test_a_failed_group_gets_a_replay_entry_and_the_use_is_reported(
    toy_model: Path, coordinator: ToyCoordinator, train: Run
) -> None:
    hopeless = TaskOrder(coordinator.tasks["train"], seed=0).at(0)
    source = (
        coordinator.desktops.group(900, hopeless, 1)
        .trajectories[0]
        .model_copy(update={"score": 1.0, "reward": 1.0})
    )
    human = _without_logprobs(source).model_copy(update={"trajectory_id": 4242})
    coordinator.wishes.replay_entries = [
        {
            "entry_id": 5,
            "label": "gold",
            "trajectory": human.model_dump(mode="json"),
        }
    ]
    coordinator.desktops.never_solved = True
    config = toy_config(toy_model, algorithm={"num_steps": 1}, replay={"enabled": True})
    assert train(config) == 0
    (use,) = coordinator.seen["/replay/uses"][0]
    assert (use["entry_id"], use["step"], use["as_likelihood"]) == (5, 1, True)
    assert {body["step"] for body in coordinator.seen["/groups"]} == {use["step"]}, "one number for a step"
    assert use["importance_ratio"] is None
    assert use["advantage"] == pytest.approx(1.5, rel=1e-3), "one success of four"
    assert coordinator.metric("loss/likelihood")[0] > 0
    assert coordinator.metric("rollout/zero_variance_fraction") == [1.0]


def test_an_entry_of_a_larger_vocabulary_is_imitated_by_its_actions(
    toy_model: Path, coordinator: ToyCoordinator, train: Run
) -> None:
    hopeless = TaskOrder(coordinator.tasks["train"], seed=0).at(0)
    (source,) = coordinator.desktops.group(900, hopeless, 1).trajectories
    press = Action(kind=ActionKind.KEY, keys=("Return",))
    ids = {"token_ids": (450, 703), "behaviour_logprobs": (-0.1, -0.1), "fingerprint": "tokenizer:other"}
    turns = tuple(
        turn.model_copy(update={"action": press, "completion": turn.completion.model_copy(update=ids)})  # type: ignore[union-attr]
        for turn in source.turns
    )
    foreign = source.model_copy(update={"trajectory_id": 4242, "score": 1.0, "reward": 1.0, "turns": turns})
    without_action = (turns[0].model_copy(update={"action": None}),)
    silent = foreign.model_copy(update={"trajectory_id": 4243, "turns": without_action})
    coordinator.wishes.replay_entries = [
        {"entry_id": number, "label": label, "trajectory": one.model_dump(mode="json")}
        for number, label, one in ((5, "accepted", foreign), (6, "gold", silent))
    ]
    coordinator.desktops.never_solved = True
    assert train(toy_config(toy_model, algorithm={"num_steps": 1}, replay={"enabled": True})) == 0
    (use,) = coordinator.seen["/replay/uses"][0]
    assert (use["entry_id"], use["as_likelihood"], use["importance_ratio"]) == (5, True, None)
    (skip,) = coordinator.seen["/replay/skips"][0]
    assert skip == {"entry_id": 6, "reason": "no_action", "message": "turn 1 has no typed action"}
    assert coordinator.metric("replay/skipped") == [1.0]
    assert coordinator.metric("loss/likelihood")[0] > 0


def _without_logprobs(trajectory: Trajectory) -> Trajectory:
    """The trajectory as a person would have left it: typed actions, but no tokens."""
    press = Action(kind=ActionKind.KEY, keys=("Return",))
    turns = tuple(
        turn.model_copy(
            update={
                "completion": None,
                "action": press,
                "source": Source.HUMAN,
            }
        )
        for turn in trajectory.turns
    )
    return trajectory.model_copy(update={"turns": turns, "source": Source.HUMAN})


def test_sft_imitates_demonstrations_before_grpo(
    toy_model: Path, coordinator: ToyCoordinator, train: Run
) -> None:
    config = toy_config(
        toy_model,
        sft=TOY_SFT | {"stop_at_success": 2 / 3},
        evaluation={"num_tasks": 2, "before": False, "after": False},
        algorithm={"num_steps": 1},
    )
    coordinator.records_demonstrations = True
    (long,) = coordinator.desktops.group(900, coordinator.tasks["train"][3], 1).trajectories
    words = Action(kind=ActionKind.TYPE, text="word " * 3000)
    turns = tuple(
        turn.model_copy(update={"completion": None, "action": words, "source": Source.ORACLE})
        for turn in long.turns
    )
    coordinator.wishes.demonstrations.append(long.model_copy(update={"turns": turns}))
    assert train(config) == 0
    (alarm,) = coordinator.seen["/alarms"][0]["alarms"]
    assert alarm["name"] == "demonstrations_left_out"
    assert "1 of 4 demonstrations were left out" in alarm["message"]
    assert "do not fit sampling.max_context_tokens = 2048" in alarm["message"]
    stages = [stage["name"] for stage in coordinator.seen["/stage"] if stage["status"] == "finished"]
    assert stages == ["demonstrations", "sft", "grpo"]
    assert len(coordinator.wishes.demonstrations) == 4, "two of each of two families"
    losses = coordinator.metric("sft/loss")
    assert losses[0] > 0
    assert losses == sorted(losses, reverse=True)


def test_sft_stops_by_partial_scores_too(toy_model: Path, coordinator: ToyCoordinator, train: Run) -> None:
    """Nothing is solved, and half of a task is done now and then."""
    coordinator.records_demonstrations = True
    coordinator.desktops.score_of = lambda reward: min(reward, 0.5)
    config = toy_config(
        toy_model,
        sft=TOY_SFT | {"stop_at_success": 0.1},
        evaluation={"num_tasks": 2, "before": False, "after": False},
        algorithm={"num_steps": 0},
    )
    assert train(config) == 0
    (success,) = coordinator.metric("sft/success")
    assert 0.1 <= success <= 0.5
    assert len(coordinator.metric("sft/loss")) == 1, "it ended at its first evaluation, after 10 steps"


def test_missing_settings_are_named(
    toy_model: Path, output: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("DESKHAND_COORDINATOR_URL", raising=False)
    output.mkdir()
    assert main(arguments(toy_config(toy_model), output)) == ExitCode.WRONG_SETTINGS
    assert "DESKHAND_COORDINATOR_URL is not set" in caplog.text


def test_after_sigterm_two_processes_leave_a_checkpoint_from_which_one_goes_on(
    toy_model: Path, coordinator: ToyCoordinator, train: Run, output: Path
) -> None:
    config = toy_config(toy_model, algorithm={"num_steps": 500}, checkpoints={"every": 400})
    process = start_process(config, output, coordinator, processes=2)
    while not coordinator.metric("loss/policy"):
        assert process.poll() is None, (output / "log").read_text()[-3000:]
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.wait(150)
    paused = outcome(output)
    assert (paused["exit_code"], paused["status"]) == (75, "paused"), (output / "log").read_text()[-3000:]

    done = paused["step"]
    shorter = toy_config(toy_model, algorithm={"num_steps": done + 1}, checkpoints={"every": 400})
    assert train(shorter) == 0
    steps = [point["step"] for point in coordinator.seen["/metrics"] if "loss/policy" in point["values"]]
    assert steps == list(range(1, done + 2))


def test_flat_groups_are_replaced_by_the_next_tasks_up_to_the_cap(
    toy_model: Path, coordinator: ToyCoordinator, train: Run
) -> None:
    coordinator.desktops.never_solved = True
    assert train(toy_config(toy_model, algorithm={"num_steps": 2, "max_extra_groups": 3})) == 0
    order = TaskOrder(coordinator.tasks["train"], seed=0)
    assert [group.step for group in coordinator.groups] == [1] * 5 + [2] * 5
    assert [group.task for group in coordinator.groups] == order.take(0, 10)
    assert coordinator.metric("rollout/num_trajectories") == [20.0, 20.0], "what was sampled is shown"


def test_branches_credit_turns_and_are_trained_on(
    toy_model: Path, coordinator: ToyCoordinator, train: Run
) -> None:
    """Every screen of the toy world is shared, but none by as many as count."""
    algorithm = {"credit": "branches", "least_visits": 128, "branch_size": 3, "branch_seconds": 6.0}
    coordinator.desktops.num_turns = 3
    assert train(toy_config(toy_model, algorithm=algorithm | {"num_steps": 2})) == 0
    branches = [group for group in coordinator.groups if group.purpose is Purpose.BRANCH]
    assert len(branches) == 4, "a state costs 3 s, so two a step"
    assert {(len(group.trajectories), group.branch_turn) for group in branches} == {(3, 1)}
    assert coordinator.metric("branches/states") == [2.0, 2.0]
    assert coordinator.metric("rollout/num_trajectories") == [8.0, 8.0], "branches are no rollouts"
    updated = {member["trajectory_id"] for batch in coordinator.seen["/members"] for member in batch}
    assert updated >= {member.trajectory_id for group in branches for member in group.trajectories}
    assert max(coordinator.metric("policy/logprob_gap")) < 1e-3, "their logprobs are of the tokens"
    assert coordinator.metric("async/staleness_max") == [0.0, 0.0]


@pytest.mark.parametrize("max_staleness", [0, 2])
def test_grpo_ends_when_its_time_is_over_and_is_evaluated(
    max_staleness: int, toy_model: Path, coordinator: ToyCoordinator, train: Run, output: Path
) -> None:
    algorithm = {"num_steps": 50, "max_seconds": 1e-3, "max_staleness": max_staleness}
    assert train(toy_config(toy_model, algorithm=algorithm, evaluation={"num_tasks": 2})) == 0
    assert len(coordinator.metric("loss/policy")) == 1
    assert [one["name"] for one in coordinator.seen["/evaluations"]] == ["before"] * 2 + ["after"] * 2
    practised = [group.step for group in coordinator.groups if group.purpose == "train"]
    assert max(practised) == 1 + max_staleness, "what was sampled ahead is given up"
    assert list((output / "checkpoints").glob("*-grpo-000001"))


@pytest.mark.parametrize("max_staleness", [0, 1])
def test_the_second_phase_samples_and_trains_at_its_own_temperature(
    max_staleness: int, toy_model: Path, coordinator: ToyCoordinator, train: Run
) -> None:
    sampling = {"temperature": 1.0, "later_temperature": 0.5, "later_from_step": 1}
    assert train(toy_config(toy_model, sampling=sampling, algorithm={"max_staleness": max_staleness})) == 0
    asked = [body["temperature"] for body in coordinator.seen["/groups"]]
    assert asked == [1.0, 1.0, 0.5, 0.5, 0.5, 0.5]
    if max_staleness == 0:
        assert max(coordinator.metric("policy/logprob_gap")) < 1e-3


def test_a_windowed_history_trains_with_corrections_on_packed_sequences(
    toy_model: Path, coordinator: ToyCoordinator, train: Run
) -> None:
    config = toy_config(
        toy_model,
        tasks={"curriculum": "solve_rate"},
        algorithm={
            "name": "cispo",
            "dual_clip": 0,
            "old_logprobs": "recomputed",
            "correction": "mask",
            "aggregation": "trajectory_mean",
            "num_steps": 2,
        },
        optimiser={"packing": True, "microbatch_tokens": 256},
    )
    assert train(config) == 0
    assert coordinator.metric("policy/correction_cut_fraction") == [0.0, 0.0]
    assert max(coordinator.metric("policy/logprob_gap")) < 1e-3


def test_a_collapse_goes_back_to_the_last_good_checkpoint(
    toy_model: Path, coordinator: ToyCoordinator, train: Run, output: Path
) -> None:
    coordinator.desktops.never_solved = True
    config = toy_config(
        toy_model,
        algorithm={"num_steps": 4, "skip_zero_variance": False, "entropy_coefficient": 0.01},
        checkpoints={"every": 1, "keep_last": 20, "roll_back_on": ["all_zero_rewards"], "max_roll_backs": 1},
    )
    assert train(config) == 0
    alarms = [alarm for batch in coordinator.seen["/alarms"] for alarm in batch["alarms"]]
    (rolled,) = [alarm for alarm in alarms if alarm["name"] == "rolled_back"]
    assert rolled["step"] == 3, "three steps without a success are the alarm"
    assert "00003-grpo-000002 after all_zero_rewards" in rolled["message"]
    assert coordinator.metric("checkpoint/rolled_back") == [1.0]
    rates = coordinator.metric("optimiser/learning_rate")
    assert rates == pytest.approx([1e-3, 1e-3, 1e-3, 5e-4])
    versions = [body["policy_version"] for body in coordinator.seen["/weights"]]
    assert versions == sorted(set(versions)), "a version never means two things"
    state = json.loads((output / "checkpoints" / "00004-grpo-000003" / "state.json").read_text())
    assert state["rolled_back_to"] == ["00003-grpo-000002"]
    good, saved = (
        (output / "checkpoints" / name / "model" / "model.safetensors").read_bytes()
        for name in ("00003-grpo-000002", "00004-grpo-000003")
    )
    assert good == saved, "the weights are those of the good checkpoint"


def test_evaluation_only_reports_success_and_trains_nothing(
    toy_model: Path, coordinator: ToyCoordinator, train: Run, output: Path
) -> None:
    config = toy_config(toy_model, evaluation={"only": True, "num_tasks": 4, "samples_per_task": 3})
    assert train(config) == 0
    sampled, greedy = coordinator.seen["/evaluations"]
    for result, temperature, num_samples in ((sampled, 1.0, 12), (greedy, 0.0, 4)):
        assert (result["name"], result["num_tasks"], result["temperature"]) == ("before", 4, temperature)
        assert result["num_samples"] == num_samples
        assert result["low"] <= result["success"] <= result["high"]
        assert sum(won for won, *_ in result["by_task"].values()) == result["num_success"]
    asked = [(body["temperature"], body["size"]) for body in coordinator.seen["/groups"]]
    assert asked == [(1.0, 3)] * 4 + [(0.0, 1)] * 4
    last = coordinator.seen["/progress"][-1]
    assert (last["done"], last["total"]) == (16, 16)
    assert not coordinator.seen["/weights"]
    assert not (output / "checkpoints").exists()
    assert outcome(output)["status"] == "finished"


def test_sft_alone_imitates_what_people_accepted(
    toy_model: Path, coordinator: ToyCoordinator, train: Run, output: Path
) -> None:
    for number, task in enumerate(coordinator.tasks["train"][:3]):
        (member,) = coordinator.desktops.group(900 + number, task, 1).trajectories
        accepted = _without_logprobs(member).model_copy(update={"score": 1.0, "reward": 1.0})
        coordinator.wishes.replay_entries.append(
            {
                "entry_id": number,
                "label": "accepted",
                "trajectory": accepted.model_dump(mode="json"),
            }
        )
    sft = {"enabled": True, "source": "replay", "locator_questions": 0, "max_steps": 20}
    sft |= {"evaluate_every": 20, "muon_learning_rate": 0, "learning_rate": 1e-2}
    assert train(toy_config(toy_model, sft=sft, algorithm={"num_steps": 0})) == 0
    losses = coordinator.metric("sft/loss")
    assert losses[-1] < losses[0]
    assert not coordinator.groups, "nothing was sampled: no oracle was asked"
    assert outcome(output)["status"] == "finished"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("sizes", [(1, 2, 1), (4, 2, 1)])
def test_a_checkpoint_goes_on_with_another_number_of_processes(
    sizes: tuple[int, ...], toy_model: Path, coordinator: ToyCoordinator, output: Path
) -> None:
    for num_steps, processes in zip((2, 4, 6), sizes, strict=True):
        config = toy_config(toy_model, algorithm={"num_steps": num_steps}, checkpoints={"every": 2})
        process = start_process(config, output, coordinator, processes=processes)
        assert process.wait(600) == 0, (output / "log").read_text()[-3000:]
    steps = [point["step"] for point in coordinator.seen["/metrics"] if "loss/policy" in point["values"]]
    assert steps == list(range(1, 7))
    assert max(coordinator.metric("sync/drift")) < 1e-4
