"""The experiment config: the only definition of every knob.

The launch form, the YAML view, the API schema and the docs page are generated from this
model tree. Torch-free. Unknown keys and impossible combinations are refused with the
field's name. `unit` and `group` in `json_schema_extra` are for the form.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from training.contracts.config.algorithm import AlgorithmConfig, ReplayConfig, algorithm_problems
from training.contracts.config.engine import EngineConfig, engine_problems
from training.contracts.config.osworld import OsworldConfig
from training.contracts.config.qemu import QemuConfig
from training.contracts.config.remote_desktops import GatewayConfig, RemoteConfig, fleet_problems
from training.contracts.config.rewards import RewardConfig
from training.contracts.config.section import Section, knob
from training.contracts.config.trainer import LoraConfig, OptimiserConfig, ParallelConfig
from training.contracts.config.windows import WindowsConfig


class CoordinateSpace(StrEnum):
    """What the numbers in a completion mean."""

    SCREEN = "screen"
    """Pixels of the desktop."""
    RESIZED = "resized"
    """Pixels of the image after the processor's resize."""
    PERMILLE = "permille"
    """0-1000 relative, Qwen3-VL's native form."""


class ModelConfig(Section):
    """Which weights and how they are read."""

    path: str = knob(
        "first-desk",
        "Checkpoint folder in transformers format, or the name of a shipped one (first-desk, tiny-random).",
    )
    dtype: Literal["float32", "bfloat16"] = knob("float32", "Compute type. CPU: float32.")
    fp32_logits: bool = knob(
        True,
        "With bfloat16: logits in fp32, in trainer and engine alike. Rounded to bfloat16, those of a sure "
        "policy are off by up to 0.06 nats, differently on either side.",
    )
    freeze_vision: bool = knob(False, "Keep the vision tower fixed.")
    min_pixels: int = knob(1024, "Smallest image after resize.", unit="pixels", ge=256)
    max_pixels: int = knob(49152, "Largest image after resize (49152 = 256x192).", unit="pixels", ge=1024)


class PromptConfig(Section):
    """How a trajectory becomes tokens, and how completions become actions."""

    style: Literal["first-desk", "computer-use"] = knob(
        "first-desk", "Prompt template: first-desk is short; computer-use lists the whole tool schema."
    )
    dialect: Literal["auto", "json", "pyautogui", "keyboard", "keyboard-mouse"] = knob(
        "auto",
        "Which action dialects the parser accepts; auto tries all. The keyboard dialects are also what the "
        "computer-use prompt then explains.",
    )
    coordinate_space: CoordinateSpace = knob(CoordinateSpace.PERMILLE, "Unit of coordinates in completions.")
    text_only: bool = knob(False, "Ablation: leave the screenshots out (the blind policy).")
    history: Literal["full", "window"] = knob(
        "full",
        "window: older screenshots between the first and the last ones are left out, their texts stay.",
    )
    keep_first_images: int = knob(1, "With a window: first turns that keep their screenshot.", ge=0)
    keep_last_images: int = knob(2, "With a window: last turns that keep their screenshot.", ge=1)
    window_slack: int = knob(
        0,
        "With a window: the last screenshots may grow by this many before they are cut back. Fewer cuts mean "
        "fewer distinct prefixes: more cache hits, fewer training sequences.",
        ge=0,
    )


class TaskConfig(Section):
    """Which tasks are practised."""

    task_set: str = knob("first-desk", "Name of an imported task set.")
    families: tuple[str, ...] = knob((), "Only these families; empty = all of the set.")
    levels: tuple[int, ...] = knob((), "Only these difficulty levels; empty = all.")
    curriculum: Literal["uniform", "solve_rate"] = knob(
        "uniform", "solve_rate: within a family, tasks solved about half of the time come more often."
    )
    curriculum_floor: float = knob(
        0.2, "Share of the draws that stays uniform, so that no task is forgotten.", ge=0, le=1
    )


class DesktopConfig(Section):
    """The machines that episodes run on."""

    provider: Literal["x11", "qemu", "windows", "remote", "gateway", "osworld"] = knob(
        "x11", "Where desktops come from."
    )
    num_desktops: int = knob(8, "Trajectories in flight at most.", unit="desktops", ge=1, le=512)
    max_turns: int = knob(8, "Turns before a trajectory is truncated.", unit="turns", ge=1, le=200)
    turn_timeout_s: float = knob(30.0, "Limit for one completion and action.", unit="s", gt=0)
    trajectory_timeout_s: float = knob(120.0, "Limit for a whole trajectory.", unit="s", gt=0)
    retries: int = knob(2, "Re-runs of an errored trajectory before its place stays empty.", ge=0, le=10)
    qemu: QemuConfig = QemuConfig()
    windows: WindowsConfig = WindowsConfig()
    remote: RemoteConfig = RemoteConfig()
    gateway: GatewayConfig = GatewayConfig()
    osworld: OsworldConfig = OsworldConfig()


class SamplingConfig(Section):
    """How completions are sampled in training rollouts."""

    temperature: float = knob(1.0, "Softmax temperature; logprobs are taken at it.", gt=0, le=2)
    top_p: float = knob(1.0, "Must stay 1: a truncated distribution biases importance ratios.", ge=1, le=1)
    max_completion_tokens: int = knob(40, "Tokens of one completion.", unit="tokens", ge=1, le=8192)
    max_context_tokens: int = knob(2048, "Tokens of the whole trajectory.", unit="tokens", ge=64)
    max_text_tokens: int = knob(
        0, "Of these, tokens that are not image pads, the next completion included; 0 = no own limit.",
        unit="tokens", ge=0,
    )  # fmt: skip
    max_image_tokens: int = knob(0, "Of these, image pads; 0 = no own limit.", unit="tokens", ge=0)
    later_temperature: float = knob(
        0.0, "Temperature of the second phase of the GRPO stage; 0 = one phase.", ge=0, le=2
    )
    later_from_step: int = knob(0, "First step (0-based) of the second phase.", unit="steps", ge=0)


class SftConfig(Section):
    """Supervised warm-up on oracle demonstrations; stops by held-out success, not by steps."""

    enabled: bool = knob(False, "Run the warm-up stage first.")
    source: Literal["oracle", "replay"] = knob(
        "oracle",
        "Whom to imitate: oracles, recorded as needed; or what people accepted into the replay buffer "
        "(their own demonstrations, imported and sampled successes).",
    )
    demonstrations_per_family: int = knob(
        200, "Demonstrations per family on train tasks.", unit="trajectories", ge=1
    )
    batch_size: int = knob(16, "Sequences per optimiser step.", ge=1)
    learning_rate: float = knob(2e-3, "AdamW rate (embeddings, vectors).", gt=0, le=1)
    muon_learning_rate: float = knob(0.02, "Muon rate for 2-D matrices; 0 = AdamW for all.", ge=0, le=1)
    locator_questions: int = knob(
        4, "Extra 'where is this widget' questions packed per screenshot.", ge=0, le=16
    )
    entropy_coefficient: float = knob(
        0.0,
        "Entropy bonus: about 0.1 keeps a few percent of doubt in every token, which GRPO learns from.",
        ge=0,
        le=1,
    )
    max_steps: int = knob(1500, "Upper limit.", unit="steps", ge=1)
    evaluate_every: int = knob(150, "Steps between held-out evaluations.", unit="steps", ge=1)
    stop_at_success: float = knob(0.35, "Stop when held-out success reaches this.", ge=0, le=1)


class EvaluationConfig(Section):
    """Held-out success: same prompt, parser and temperature as training."""

    num_tasks: int = knob(72, "Held-out tasks per evaluation; 0 = none.", unit="tasks", ge=0)
    before: bool = knob(True, "Evaluate before the first GRPO step.")
    after: bool = knob(True, "Evaluate after the last step.")
    every: int = knob(0, "Also every so many steps; 0 = never.", unit="steps", ge=0)
    temperature: float = knob(1.0, "Sampling temperature of evaluations; 0 = greedy.", ge=0, le=2)
    only: bool = knob(False, "Evaluate model.path and stop: nothing is trained.")


CollapseAlarm = Literal["entropy_collapse", "grad_norm_explosion", "parse_collapse", "all_zero_rewards"]
"""Alarms of `training.loop.alarms` that can mean that the policy has collapsed."""


class CheckpointConfig(Section):
    """What is saved."""

    directory: str = knob("", "Folder; empty = the experiment's own folder.")
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


class AlarmConfig(Section):
    """Limits of the guards."""

    zero_variance_fraction: float = knob(0.8, "Groups with equal rewards in a step.", ge=0, le=1)
    entropy_drop: float = knob(0.9, "Fall from the run's maximum entropy.", ge=0, le=1)
    grad_norm_factor: float = knob(10.0, "Times the running median.", gt=1)
    parse_error_rate: float = knob(0.3, "Turns without a parsable action.", ge=0, le=1)
    truncation_rate: float = knob(0.7, "Truncated trajectories in a step.", ge=0, le=1)
    errored_rate: float = knob(0.05, "Errored trajectories in a step.", ge=0, le=1)
    logprob_drift: float = knob(0.05, "Mean engine/trainer difference on the canary.", unit="nats", gt=0)


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

    @model_validator(mode="after")
    def _possible(self) -> ExperimentConfig:
        """Refuse combinations that cannot run; each message starts with the field's path."""
        problems = list(impossible_combinations(self))
        if problems:
            raise ValueError("; ".join(f"{path}: {message}" for path, message in problems))
        return self


def impossible_combinations(config: ExperimentConfig) -> list[tuple[str, str]]:
    """(field path, message) for every cross-field rule that `config` breaks."""
    found: list[tuple[str, str]] = []
    algorithm, optimiser = config.algorithm, config.optimiser
    found += algorithm_problems(algorithm)
    found += engine_problems(config.engine, optimiser.num_processes)
    if config.prompt.history == "window" and algorithm.aggregation == "sequence_mean":
        found.append(
            (
                "algorithm.aggregation",
                "with prompt.history window a trajectory is several sequences: use trajectory_mean",
            )
        )
    samples = algorithm.group_size * algorithm.groups_per_step
    if samples % optimiser.num_processes:
        found.append(
            (
                "optimiser.num_processes",
                f"{samples} samples per step cannot be split evenly over {optimiser.num_processes} processes",
            )
        )
    if bool(config.sampling.later_temperature) != bool(config.sampling.later_from_step):
        found.append(
            (
                "sampling.later_temperature",
                "a second phase needs both later_temperature and later_from_step",
            )
        )
    if not (algorithm.num_steps or config.sft.enabled or config.evaluation.only):
        found.append(("algorithm.num_steps", "0 steps and no SFT stage would do nothing"))
    if config.evaluation.only and not config.evaluation.num_tasks:
        found.append(("evaluation.num_tasks", "evaluation.only with 0 tasks would do nothing"))
    if config.model.min_pixels > config.model.max_pixels:
        found.append(("model.min_pixels", "must not exceed model.max_pixels"))
    if config.prompt.text_only and config.sft.enabled:
        found.append(("prompt.text_only", "the blind ablation cannot be combined with an SFT stage"))
    desktops = config.desktops
    found += fleet_problems(desktops.provider, desktops.num_desktops, desktops.remote, desktops.gateway)
    return found


class ConfigError(ValueError):
    """Raised when a config is refused; `problems` maps field paths to messages."""

    def __init__(self, problems: dict[str, str]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{path}: {message}" for path, message in problems.items()))


def parse_config(values: dict[str, Any]) -> ExperimentConfig:
    """Validated config from nested plain values; raises ConfigError naming every bad field."""
    try:
        return ExperimentConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_problems(error)) from error


def _problems(error: ValidationError) -> dict[str, str]:
    problems: dict[str, str] = {}
    for item in error.errors():
        path = ".".join(str(part) for part in item["loc"])
        if path:
            problems[path] = _plain(item)
            continue
        for part in str(item["ctx"]["error"]).split("; "):
            field, _, message = part.partition(": ")
            problems[field] = message
    return problems


def _plain(item: Any) -> str:
    if item["type"] == "extra_forbidden":
        return "unknown key; remove it or check its spelling"
    return str(item["msg"]).removeprefix("Value error, ")


def to_yaml(config: ExperimentConfig) -> str:
    """The whole resolved config as YAML in field order."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def from_yaml(text: str) -> ExperimentConfig:
    """Validated config from YAML; raises ConfigError (field "yaml" for a syntax error)."""
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError({"yaml": f"not valid YAML: {error}"}) from error
    if not isinstance(values, dict):
        raise ConfigError({"yaml": "the top level must be a mapping of sections"})
    return parse_config(values)


PresetName = Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]


class Preset(Section):
    """A named starting point of the launch form."""

    name: PresetName
    title: str
    summary: str
    group: str = ""
    """Key of `training.planning.presets.GROUPS`."""
    config: ExperimentConfig
