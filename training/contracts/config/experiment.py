"""The whole config of an experiment: the only definition of every knob.

The launch form, the YAML view, the API schema and the docs page are generated from this model tree.
Unknown keys and impossible combinations are refused with the field's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from training.contracts.config.alarm_limits import AlarmConfig
from training.contracts.config.algorithm import (
    AlgorithmConfig,
    algorithm_problems,
    ignores_age,
    imitates_successes,
)
from training.contracts.config.desktops import DesktopConfig
from training.contracts.config.learning import (
    LoraConfig,
    OptimiserConfig,
    ParallelConfig,
    ReplayConfig,
    SftConfig,
)
from training.contracts.config.observation import observation_problems
from training.contracts.config.policy import (
    EngineConfig,
    ModelConfig,
    PromptConfig,
    SamplingConfig,
    engine_problems,
)
from training.contracts.config.reward_presets import RewardConfig, reward_problems
from training.contracts.config.section import Problem, Section, knob
from training.contracts.config.storable_values import PathText

EmptyIsNone = BeforeValidator(lambda value: None if value == "" else value)
"""For forms, whose inputs hold text."""


FamilyShares = Literal["equal", "by_size"]
"""See `training.rollouts.task_order`."""


class TaskConfig(Section):
    """Which tasks are practised."""

    task_set: str = knob("first-desk", "Name of an imported task set.")
    revision: int = knob(
        0, "Task-set revision to use; 0 = the newest one when the experiment is queued.", ge=0
    )
    families: tuple[str, ...] = knob((), "Only these families; empty = all of the set.")
    levels: tuple[int, ...] = knob((), "Only these difficulty levels; empty = all.")
    family_shares: FamilyShares = knob(
        "equal",
        "equal = every family is practised as often as any other, so a task of a small family comes more "
        "often; by_size = every task comes as often as any other.",
    )
    curriculum: Literal["uniform", "solve_rate"] = knob(
        "uniform", "solve_rate: within a family, tasks solved about half of the time come more often."
    )
    curriculum_floor: float = knob(
        0.2, "Share of the tasks that is sampled uniformly, so that no task is forgotten.", ge=0, le=1
    )


class EvaluationConfig(Section):
    """Held-out success, sampled and greedy: same prompt, parser and temperature as training."""

    num_tasks: int = knob(72, "Held-out tasks per evaluation; 0 = none.", unit="tasks", ge=0)
    samples_per_task: int = knob(
        1, "Trajectories per task of the sampled evaluation; the greedy one has one.", ge=1, le=64
    )
    greedy: bool = knob(
        True, "Evaluate greedily too: success that rises only when sampled was sharpened, not learned."
    )
    before: bool = knob(True, "Evaluate before the first GRPO step.")
    after: bool = knob(True, "Evaluate after the last step.")
    every: int = knob(0, "Steps between further evaluations; 0 = none.", unit="steps", ge=0)
    temperature: Annotated[float | None, EmptyIsNone] = knob(
        None, "Of the sampled evaluation; empty = sampling.temperature, 0 = only the greedy one.", ge=0, le=2
    )
    eye_test: Literal["warn", "stop", "off"] = knob(
        "warn",
        "Before evaluations: do engine and trainer read fixed pictures or texts alike? If not, warn = go on "
        "and stamp the number with it; stop = end the run. off = compare nothing.",
    )
    only: bool = knob(False, "Evaluate model.path and stop: nothing is trained.")


@dataclass(frozen=True, slots=True)
class EvaluationPass:
    """All tasks of an evaluation once at one temperature."""

    temperature: float
    """0 = greedy."""
    samples_per_task: int


CollapseAlarm = Literal["entropy_collapse", "grad_norm_explosion", "parse_collapse", "all_zero_rewards"]
"""Alarms of `training.loop.alarms` that can mean that the policy has collapsed."""


class CheckpointConfig(Section):
    """What is saved."""

    directory: PathText = knob("", "Folder; empty = the experiment's own folder.")
    every: int = knob(5, "Steps between checkpoints.", unit="steps", ge=1)
    keep_last: int = knob(3, "Older ones are deleted, the best by evaluation is kept.", ge=1)
    asynchronous: bool = knob(
        True, "Train on while a checkpoint is written; needs host memory for a copy of weights and optimiser."
    )
    max_restarts: int = knob(3, "Automatic restarts after a crash.", ge=0, le=100)
    roll_back_on: tuple[CollapseAlarm, ...] = knob(
        (),
        "Alarms after which weights and optimiser go back to the last good checkpoint: entropy_collapse, "
        "grad_norm_explosion, parse_collapse, all_zero_rewards. Empty = never.",
    )
    max_roll_backs: int = knob(2, "Roll-backs per experiment.", ge=1, le=100)
    roll_back_rate: float = knob(
        0.5, "What the learning rate is multiplied with at each roll-back.", gt=0, le=1
    )


class ExperimentConfig(Section):
    """Everything that defines an experiment."""

    model: ModelConfig = ModelConfig()
    prompt: PromptConfig = PromptConfig()
    tasks: TaskConfig = TaskConfig()
    desktops: DesktopConfig = DesktopConfig()
    sampling: SamplingConfig = SamplingConfig()
    engine: EngineConfig = EngineConfig()
    rewards: RewardConfig = RewardConfig()
    sft: SftConfig = SftConfig()
    algorithm: AlgorithmConfig = AlgorithmConfig()
    replay: ReplayConfig = ReplayConfig()
    optimiser: OptimiserConfig = OptimiserConfig()
    parallel: ParallelConfig = ParallelConfig()
    lora: LoraConfig = LoraConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    checkpoints: CheckpointConfig = CheckpointConfig()
    alarms: AlarmConfig = AlarmConfig()

    @property
    def evaluation_passes(self) -> tuple[EvaluationPass, ...]:
        """What an evaluation consists of: sampled first, then greedy; at least one of them."""
        wanted = self.evaluation
        temperature = self.sampling.temperature if wanted.temperature is None else wanted.temperature
        sampled = (EvaluationPass(temperature, wanted.samples_per_task),) if temperature else ()
        greedy = (EvaluationPass(0.0, 1),) if wanted.greedy or not sampled else ()
        return sampled + greedy

    @property
    def num_gpus(self) -> int:
        """GPUs that trainer and engine ask for."""
        engine, processes = self.engine, self.optimiser.num_processes
        if engine.name != "sglang":
            return processes
        shared = engine.placement == "colocated"
        return max(processes, engine.num_gpus if shared else processes + engine.num_gpus)

    @property
    def num_gpus_per_host(self) -> int:
        """Of each host; one that is spread over several shares them between trainer and engine."""
        return self.num_gpus // self.optimiser.num_hosts

    @model_validator(mode="after")
    def _possible(self) -> ExperimentConfig:
        """Refuse combinations that cannot run; each message starts with the field's path."""
        problems = list(impossible_combinations(self))
        if problems:
            raise ValueError("; ".join(f"{path}: {message}" for path, message in problems))
        return self


def _gang_problems(config: ExperimentConfig) -> Iterator[Problem]:
    """Of experiments over several hosts."""
    optimiser = config.optimiser
    processes, hosts, least = optimiser.num_processes, optimiser.num_hosts, optimiser.least_hosts
    if least > hosts:
        yield "optimiser.least_hosts", f"{least} is more than the {hosts} of num_hosts"
    if hosts == 1:
        return
    if processes % hosts:
        yield "optimiser.num_hosts", f"{processes} processes cannot be spread evenly over {hosts} hosts"
    samples = config.algorithm.group_size * config.algorithm.groups_per_step
    for fewer in range(least, hosts) if least else ():
        if samples % max(optimiser.processes_per_host * fewer, 1):
            text = f"{samples} samples per step cannot be split evenly over the processes of {fewer} hosts"
            yield "optimiser.least_hosts", text
    if config.engine.name == "sglang":
        yield "optimiser.num_hosts", "an experiment with SGLang runs on one host: set it to 1"
    if not config.checkpoints.directory:
        yield "checkpoints.directory", "name a folder that all hosts share: each writes its shards there"


def impossible_combinations(config: ExperimentConfig) -> Iterator[Problem]:
    """Every rule across sections that `config` breaks."""
    algorithm, optimiser, evaluation = config.algorithm, config.optimiser, config.evaluation
    yield from reward_problems(config.rewards)
    yield from algorithm_problems(algorithm)
    yield from engine_problems(config.engine, optimiser.num_processes)
    yield from _gang_problems(config)
    yield from _prompt_problems(config.prompt, algorithm.aggregation)
    yield from _control_problems(config)
    if imitates_successes(algorithm) and config.replay.enabled:
        yield "replay.enabled", "rejection_fine_tuning imitates the policy's own successes alone: turn it off"
    if ignores_age(algorithm) and (config.replay.enabled or algorithm.max_staleness):
        yield (
            "algorithm.correction",
            "with recomputed old_logprobs only a correction knows that replayed and stale tokens were "
            "sampled by another policy: set truncate or mask, or old_logprobs: engine",
        )
    samples = algorithm.group_size * algorithm.groups_per_step
    if samples % optimiser.num_processes:
        yield (
            "optimiser.num_processes",
            f"{samples} samples per step cannot be split evenly over {optimiser.num_processes} processes",
        )
    if bool(config.sampling.later_temperature) != bool(config.sampling.later_from_step):
        yield "sampling.later_temperature", "a second phase needs both later_temperature and later_from_step"
    if not (algorithm.num_steps or config.sft.enabled or evaluation.only):
        yield "algorithm.num_steps", "0 steps and no SFT stage would do nothing"
    if evaluation.only and not evaluation.num_tasks:
        yield "evaluation.num_tasks", "evaluation.only with 0 tasks would do nothing"
    if config.model.min_pixels > config.model.max_pixels:
        yield "model.min_pixels", "must not exceed model.max_pixels"
    yield from observation_problems(config.prompt, has_sft=config.sft.enabled)
    yield from config.desktops.provider_section.problems(config.desktops.num_desktops)


def _prompt_problems(prompt: PromptConfig, aggregation: str) -> Iterator[Problem]:
    if prompt.task_text and "{instruction}" not in prompt.task_text:
        yield "prompt.task_text", "must hold {instruction}, where the task's words go"
    if prompt.history != "full" and aggregation == "sequence_mean":
        yield (
            "algorithm.aggregation",
            f"with prompt.history {prompt.history} a trajectory is several sequences: use trajectory_mean",
        )


def _control_problems(config: ExperimentConfig) -> Iterator[Problem]:
    """A control run must not see true successes by another way."""
    if config.algorithm.reward_control == "none":
        return
    if config.algorithm.success_likelihood:
        yield "algorithm.success_likelihood", "imitates true successes, so a reward control needs 0"
    if config.replay.enabled:
        yield "replay.enabled", "injects true successes, so algorithm.reward_control needs it off"


PresetName = Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]


class Preset(Section):
    """A named starting point of the launch form."""

    name: PresetName
    title: str
    summary: str
    group: str = ""
    """Key of `training.planning.presets.GROUPS`."""
    config: ExperimentConfig
