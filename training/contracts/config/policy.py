"""Sections about the policy: its weights, its prompt, how it is sampled, and the engine that does so."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Literal

from training.contracts.config.observation import ObservationKnobs
from training.contracts.config.section import Problem, Section, knob
from training.contracts.config.storable_values import PathText

Dialect = Literal[
    "auto",
    "json",
    "tool-call",
    "xml-call",
    "evocua",
    "gui-owl",
    "holo",
    "anthropic",
    "openai",
    "ui-tars",
    "pyautogui",
    "opencua",
    "keyboard",
    "keyboard-mouse",
]


class CoordinateSpace(StrEnum):
    """What the numbers in a completion mean."""

    SCREEN = "screen"
    """Pixels of the desktop."""
    RESIZED = "resized"
    """Pixels of the image after the processor's resize."""
    PERMILLE = "permille"
    """0-1000 relative, Qwen3-VL's native form."""
    RELATIVE = "relative-1000"
    """0-999 of a grid of 1000 x 1000 points, which Qwen3-VL's published computer-use prompt names."""


class ModelConfig(Section):
    """Which weights and how they are read."""

    path: PathText = knob(
        "first-desk",
        "Checkpoint folder in transformers format, a shipped one (first-desk, tiny-random), a model of the "
        "hub in this machine's cache (ORG/NAME@REVISION), or a checkpoint (experiment:NUMBER@best).",
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
    image_factor: int = knob(
        32,
        "Sides of a resized image are multiples of this: 32 of Qwen3-VL, 28 of Qwen2.5-VL. A launch takes it "
        "from the model's folder where this machine has one.",
        unit="pixels",
        ge=8,
        le=128,
    )


class PromptConfig(ObservationKnobs):
    """How a trajectory becomes tokens, and how completions become actions."""

    style: Literal["first-desk", "computer-use", "tool-call"] = knob(
        "first-desk",
        "Prompt template. first-desk is short, for tiny models, whose permille coordinates are multiples of "
        "10; computer-use lists the whole tool schema; tool-call is laid out as the agents of published "
        "models do it: the tool in the system message, the task once, screenshots and answers in the order "
        "of the dialect's own agent.",
    )
    system_text: str = knob(
        "", "Words of the system message instead of the style's own; as published models were trained with.",
        max_length=20_000,
    )  # fmt: skip
    task_text: str = knob(
        "",
        "Words beside the first screenshot instead of the style's own, with {instruction} and, with history "
        "actions, {previous_actions} in it.",
        max_length=4000,
    )
    dialect: Dialect = knob(
        "auto",
        "How completions say actions; the computer-use prompt explains it and demonstrations are written in "
        "it. auto reads each that its text shows: json and tool calls, code, tags; it writes json.",
    )
    actions_per_turn: int = knob(
        1,
        "How many actions one completion may hold, in order. They are done one by one; the policy sees the "
        "screen after the last one. More are a parse error.",
        ge=1,
        le=16,
    )
    coordinate_space: CoordinateSpace = knob(CoordinateSpace.PERMILLE, "Unit of coordinates in completions.")
    history: Literal["full", "window", "actions"] = knob(
        "full",
        "window: older screenshots between the first and the last ones are left out, their texts stay. "
        "actions: turns before the last screenshots are given as a list of what was done.",
    )
    keep_first_images: int = knob(1, "With a window: first turns that keep their screenshot.", ge=0)
    keep_last_images: int = knob(2, "With a window or actions: last turns that keep their screenshot.", ge=1)
    window_slack: int = knob(
        0,
        "With a window or actions: the last screenshots may grow by this many before they are cut back. "
        "Fewer cuts mean fewer distinct prefixes: more cache hits, fewer training sequences.",
        ge=0,
    )

    @property
    def permille_grid(self) -> int:
        """Demonstrations in permille are rounded to multiples of this.

        To a tiny model two digits carry a position; models that were published know all 1001 of them.
        """
        return 10 if self.style == "first-desk" else 1


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
    top_logprobs: int = knob(
        0,
        "Likeliest tokens that are recorded at each place of a completion and shown in the viewer; 0 = none.",
        unit="tokens",
        ge=0,
        le=5,
    )
    later_temperature: float = knob(
        0.0, "Temperature of the second phase of the GRPO stage; 0 = one phase.", ge=0, le=2
    )
    later_from_step: int = knob(0, "First step (0-based) of the second phase.", unit="steps", ge=0)


POLICY_SERVER_START_S = 300.0
"""For the policy server itself: imports and, without SGLang, the model."""


class EngineConfig(Section):
    """What samples completions for the policy server."""

    name: Literal["transformers", "sglang"] = knob(
        "transformers",
        "transformers: in the policy server's own process, CPU or one GPU, for small models. "
        "sglang: servers of their own on NVIDIA GPUs (`make sglang-env`).",
    )
    servers: int = knob(1, "SGLang: servers; each holds the whole model.", unit="servers", ge=1, le=64)
    gpus_per_server: int = knob(1, "SGLang: GPUs of one server (tensor parallel).", unit="GPUs", ge=1, le=8)
    placement: Literal["own", "colocated"] = knob(
        "own",
        "SGLang: own = on the GPUs behind the trainer's; colocated = on the trainer's GPUs.",
    )
    sleeps: bool = knob(
        True,
        "SGLang, colocated: servers give their memory back during the optimiser step. Off: they keep it, and "
        "rollouts go on meanwhile; for models that leave room for both.",
    )
    memory_fraction: float = knob(
        0.8,
        "SGLang: share of the memory that is free at its start, for weights, keys and values.",
        ge=0.05,
        le=0.95,
    )
    attention_backend: Literal["auto", "triton", "fa3", "flashinfer"] = knob(
        "auto",
        "SGLang: attention kernels. auto = its own choice; triton compiles everything itself and needs no "
        "binary kernels.",
    )
    dtype: Literal["model", "bfloat16", "float16", "float32"] = knob(
        "model", "SGLang: compute type; model = model.dtype."
    )
    weight_sync: Literal["auto", "disk", "nccl", "ipc"] = knob(
        "auto",
        "How new weights reach the engine. nccl: broadcast between GPUs (placement own); ipc: handles on the "
        "same GPU (colocated, transformers); disk: a folder that the engine reads, in memory when it fits; "
        "auto: the quickest possible. Without a GPU, nccl is gloo and ipc is shared memory.",
    )
    max_running: int = knob(
        0, "SGLang: sequences decoded at once per server; 0 = its own choice.", unit="sequences", ge=0
    )
    start_timeout_s: float = knob(
        900.0, "SGLang: limit for start-up; a first start compiles for minutes.", unit="s", gt=0
    )
    max_restarts: int = knob(
        3, "SGLang: restarts of servers that ended before the experiment is given up.", ge=0, le=100
    )
    extra_arguments: tuple[str, ...] = knob(
        (), "SGLang: further arguments of `sglang.launch_server`, e.g. --chunked-prefill-size=4096."
    )

    @property
    def start_limit_s(self) -> float:
        """Seconds until the policy server must generate; supervisor and trainer wait as long."""
        return POLICY_SERVER_START_S + (self.start_timeout_s if self.name == "sglang" else 0.0)

    @property
    def gives_memory(self) -> bool:
        """Whether its servers sleep while the trainer computes on the same GPUs."""
        return self.name == "sglang" and self.placement == "colocated" and self.sleeps

    @property
    def num_gpus(self) -> int:
        """GPUs that the engine's servers need."""
        return self.servers * self.gpus_per_server if self.name == "sglang" else 0


def engine_problems(engine: EngineConfig, num_processes: int) -> Iterator[Problem]:
    """What engine and trainer cannot do together."""
    if engine.name == "transformers":
        return
    if engine.placement == "colocated" and engine.num_gpus > num_processes:
        yield (
            "engine.servers",
            f"{engine.num_gpus} GPUs for the servers, but the trainer has {num_processes}: colocated "
            "servers live on the trainer's GPUs",
        )
    if engine.placement == "colocated" and engine.weight_sync == "nccl":
        yield "engine.weight_sync", "nccl cannot have two processes on one GPU: use ipc or disk"
    if engine.placement == "own" and engine.weight_sync == "ipc":
        yield "engine.weight_sync", "ipc needs engine.placement colocated: use nccl or disk"
    if any(not argument.startswith("-") for argument in engine.extra_arguments):
        yield "engine.extra_arguments", "each entry is one argument with its value: --name or --name=value"
