"""How much memory an experiment needs on each GPU (or on a host without one), by a formula.

Of the trainer, per GPU, for P weights of which Q learn, N processes, b bytes of the compute type:

    weights      4 P / N                fp32 masters, sharded; in host memory with cpu_offload
    gradients    4 Q / N                4 Q when they are summed once per step (reduce: step, or one process)
    optimiser    8 Q / N                AdamW: two fp32 moments; Muon: one, for its matrices
    gathered     b (R + 2 B)            root (embedding and head) and two blocks; b P with reshard: never
    activations  see `_activations`     of a microbatch of T tokens and R rows of patches
    logits       C V (4 + 4 + 4)        C <= 2048 scored tokens at a time: logits, log-softmax, gradient;
                                        8 more where likelihoods are read beside another sampling temperature
    reference    4 P / N                with a KL reference only; in host memory with reference_offload
    runtime      CUDA context, NCCL and kernel workspaces

While it loads: 4 P / N + 4 max(R, B) + runtime, the shards so far and one whole block, read from safetensors
(`training.model.load_by_block`); a reference is loaded after that.

Of the engine: SGLang takes `memory_fraction` of its GPUs; colocated it gives that back during the optimiser
step, so the larger of (trainer at work) and (trainer at rest + engine) counts; with `sleeps` off, both.
The transformers engine holds b P in the policy server's process.

T is the largest microbatch that the config allows: the figures are upper bounds. The forward that recomputes
old logprobs keeps nothing for a backward, so it needs no more than an update's own. What is kept per token
was fitted to measured peaks, see COMPILED.
"""

import math
from dataclasses import dataclass, field

from training.contracts.config import ExperimentConfig
from training.contracts.config.algorithm import imitates_successes
from training.planning.model_shape import MERGED, ModelShape

BYTES = {"float32": 4, "bfloat16": 2}
SCORED_PER_CHUNK = 2048
"""`training.model.policy` makes logits of this number of completion tokens at a time."""
RUNTIME_BYTES = 2.5e9


MLP = ("gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Bytes kept for the backward pass, per token or patch, in units that the shape gives."""

    per_width: float
    """Bytes per token and unit of width in a block that is not recomputed, attention and norms together."""
    per_inner: float
    """Bytes per token and unit of the MLP's inner width."""
    per_state: float
    """Bytes per token and unit of what a block with a state projects: queries, keys, values and gate."""


EAGER = Kept(per_width=28.0, per_inner=6.0, per_state=28.0)
"""The tensors that autograd keeps in a Qwen3 block in bf16: fp32 norms twice, inputs of seven linear layers,
q, k, v and the attention's output; gate, up and their product. Not measured."""
COMPILED = Kept(per_width=20.0, per_inner=4.6, per_state=12.0)
"""Fused kernels keep less. Fitted to benchmarks/gpu/train_case.py on one H200, nothing recomputed, with
microbatches of 8461 tokens and 30 176 patches: peaks of 82.0 GB (2B) and 140.1 GB (4B), met within 5 %; so
is 133.2 GB (4B, 15 % of the blocks recomputed), which was measured later, and 103.6 GB of Qwen3-4B. What a
state needs is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Bytes by part; `trainer` per process, `engine` per GPU of the engine."""

    trainer: dict[str, float] = field(default_factory=dict)
    at_rest: float
    """What the trainer holds between its steps, per process."""
    load: float = 0.0
    """What it holds at most while it reads its model, per process."""
    engine: float = 0.0
    """Of the engine on each of its GPUs; 0 = it shares the trainer's first one (transformers)."""
    engine_share: float = 0.0
    """Of the transformers engine, on the first GPU."""
    host: float = 0.0
    """In host memory because of offloading."""
    is_colocated: bool = False
    gives_memory: bool = False
    """The engine that shares the GPUs sleeps while the trainer is at work."""
    num_trainer_gpus: int = 1
    num_engine_gpus: int = 0
    """GPUs of the engine's own."""

    @property
    def num_gpus(self) -> int:
        return self.num_trainer_gpus + self.num_engine_gpus

    @property
    def per_gpu(self) -> float:
        """The largest need of any GPU."""
        awake = self.engine if self.is_colocated and not self.gives_memory else 0.0
        return max(sum(self.trainer.values()) + self.engine_share + awake, self.beside_engine, self.engine)

    @property
    def beside_engine(self) -> float:
        """What a GPU holds while the engine that shares it is awake, at the start and between steps."""
        return max(self.at_rest, self.load) + (self.engine if self.is_colocated else 0.0)

    @property
    def everything(self) -> float:
        """All of it in one memory: a host without GPUs."""
        return sum(self.trainer.values()) * self.num_trainer_gpus + self.engine_share + self.host


def footprint(config: ExperimentConfig, shape: ModelShape, gpu_bytes: float = 0.0) -> Footprint:
    """The need of `config` for a model of `shape` on GPUs of `gpu_bytes` (0 = a host without GPUs)."""
    optimiser, layout, engine = config.optimiser, config.parallel, config.engine
    ranks, num_bytes, total = optimiser.num_processes, BYTES[config.model.dtype], shape.num_parameters
    learning, masters = learning_parameters(config, shape), 4.0 * total / ranks
    moments = _moment_bytes(config, shape, learning) / ranks
    sums_once = ranks == 1 or layout.reduce == "step"
    gradients = 4.0 * learning * (1.0 if sums_once and not layout.cpu_offload else 1 / ranks)
    needs_reference = config.algorithm.kl_coefficient > 0
    parts = {
        "weights": masters,
        "gradients": gradients,
        "optimiser": moments,
        "gathered": _gathered(config, shape) * num_bytes,
        "activations": _activations(config, shape, num_bytes),
        "logits": _bytes_per_logit(config)
        * min(SCORED_PER_CHUNK, microbatch_tokens(config))
        * shape.vocabulary,
        "reference": 4.0 * total / ranks if needs_reference else 0.0,
        "runtime": RUNTIME_BYTES if gpu_bytes else 0.0,
    }
    moved = [name for name in ("weights", "gradients", "optimiser") if layout.cpu_offload and gpu_bytes]
    if needs_reference and config.algorithm.reference_offload and gpu_bytes:
        moved.append("reference")
    host = sum(parts.pop(name) for name in moved) * ranks
    loading = ("weights", "reference", "runtime")
    is_sglang = engine.name == "sglang"
    is_colocated = is_sglang and engine.placement == "colocated"
    return Footprint(
        trainer={name: value for name, value in parts.items() if value},
        at_rest=sum(parts.get(name, 0.0) for name in (*loading, "optimiser")),
        load=sum(parts.get(name, 0.0) for name in loading) + 4.0 * max(shape.root, shape.block),
        engine=engine.memory_fraction * gpu_bytes if is_sglang else 0.0,
        engine_share=0.0 if is_sglang else float(total * num_bytes),
        host=host,
        is_colocated=is_colocated,
        gives_memory=engine.gives_memory,
        num_trainer_gpus=ranks,
        num_engine_gpus=0 if is_colocated else engine.num_gpus,
    )


def _bytes_per_logit(config: ExperimentConfig) -> float:
    algorithm = config.algorithm
    reads_likelihoods = (
        config.replay.enabled or algorithm.success_likelihood > 0 or imitates_successes(algorithm)
    )
    return 20.0 if reads_likelihoods and config.sampling.temperature != 1 else 12.0


def learning_parameters(config: ExperimentConfig, shape: ModelShape) -> int:
    """Weights that get a gradient."""
    if config.lora.rank:
        sizes = {
            "q_proj": shape.width + (2 if shape.state_layers else 1) * shape.attended,
            "k_proj": shape.width + shape.cached,
            "v_proj": shape.width + shape.cached,
            "o_proj": shape.width + shape.attended,
        }
        # Adapters do not reach into the experts' common tensor, but into the expert that all tokens meet.
        if inner := shape.shared_inner if shape.experts else shape.inner:
            sizes |= dict.fromkeys(MLP, shape.width + inner)
        attending = shape.num_layers - shape.state_layers
        weighed = sum(
            sizes.get(name, 0) * (shape.num_layers if name in MLP else attending)
            for name in config.lora.targets
        )
        return config.lora.rank * (weighed + shape.state_layers * _state_adapters(config, shape))
    return shape.num_parameters - (shape.vision if config.model.freeze_vision else 0)


def _state_adapters(config: ExperimentConfig, shape: ModelShape) -> int:
    """Of a block that keeps a state: weights of its adapters for each unit of rank."""
    mixed = 2 * shape.state_keys + shape.state_values
    out = shape.width + shape.state_values
    sides = {"q_proj": shape.width + mixed + out, "o_proj": out}
    return sum(sides.get(name, 0) for name in config.lora.targets)


def microbatch_tokens(config: ExperimentConfig) -> int:
    """Tokens of the largest forward-backward of one process."""
    optimiser, algorithm, longest = config.optimiser, config.algorithm, config.sampling.max_context_tokens
    groups = math.ceil(algorithm.groups_per_step / algorithm.updates_per_batch)
    samples = algorithm.group_size * groups
    share = max(1, samples // optimiser.num_processes)
    if optimiser.packing:
        return min(max(optimiser.microbatch_tokens, longest), share * longest)
    return min(optimiser.microbatch_size, share) * longest


def microbatch_patches(config: ExperimentConfig) -> int:
    """Rows of patches of the largest forward-backward; without packing as many as its tokens can be."""
    if not config.prompt.shows_screen:
        return 0
    most = MERGED * microbatch_tokens(config)
    return min(config.optimiser.microbatch_patches, most) if config.optimiser.packing else most


def _moment_bytes(config: ExperimentConfig, shape: ModelShape, learning: int) -> float:
    if config.optimiser.name == "adamw" or config.lora.rank:
        return 8.0 * learning
    return 4.0 * (learning - shape.root) + 8.0 * shape.root


def _gathered(config: ExperimentConfig, shape: ModelShape) -> int:
    """Weights that are whole at once in the compute type."""
    if config.parallel.reshard == "never":
        return shape.num_parameters
    return shape.root + 2 * shape.block


def _activations(config: ExperimentConfig, shape: ModelShape, num_bytes: int) -> float:
    """What a microbatch keeps for its backward: text blocks, vision blocks, and one block at work.

    A recomputed block keeps its input; while it runs again, it is whole once.
    """
    tokens, patches = microbatch_tokens(config), microbatch_patches(config)
    kept = COMPILED if config.parallel.compile_blocks else EAGER
    unit = num_bytes / BYTES["bfloat16"]
    text = tokens * unit * (kept.per_width * shape.width + kept.per_inner * shape.inner_at_work)
    state = tokens * unit * kept.per_state * 2 * (shape.state_keys + shape.state_values)
    vision = patches * unit * (kept.per_width * shape.vision_width + kept.per_inner * shape.vision_inner)
    if config.model.freeze_vision or config.lora.rank:
        vision = 0.0  # nothing in it learns: no backward, nothing kept
    share = config.parallel.recomputed_share if config.parallel.activation_checkpointing else 0.0
    inputs = num_bytes * (tokens * shape.width * shape.num_layers)
    inputs += num_bytes * (patches * shape.vision_width * shape.vision_layers if vision else 0)
    whole = text * shape.num_layers + state * shape.state_layers + vision * shape.vision_layers
    at_work = max(text + state, vision) if share else 0.0
    return (1 - share) * whole + share * inputs + at_work
