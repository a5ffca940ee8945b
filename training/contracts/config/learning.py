"""Sections about learning: SFT, replay, the optimiser and how the model is laid out."""

from typing import Literal

from training.contracts.config.section import Section, knob


class SftConfig(Section):
    """SFT on demonstrations before the first GRPO step; stops by held-out success, not by steps."""

    enabled: bool = knob(False, "Run the SFT stage first.")
    source: Literal["oracle", "replay"] = knob(
        "oracle",
        "Whom to imitate: oracles, recorded as needed; or what people accepted into the replay buffer "
        "(their own demonstrations, imported and sampled successes).",
    )
    families: tuple[str, ...] = knob((), "Only these families are imitated; empty = those of tasks.families.")
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
    stop_at_success: float = knob(
        0.35, "Stop when held-out success reaches this; partial scores count in part.", ge=0, le=1
    )


class ReplayConfig(Section):
    """Injection of curated successes into groups in which every member failed."""

    enabled: bool = knob(False, "Inject accepted and gold entries when a whole group fails.")
    snapshot: int = knob(
        0,
        "Id of a buffer snapshot, whose entries are used with the labels and edits that they had; "
        "0 = the buffer as it is.",
        ge=0,
    )
    threshold: float = knob(
        0.5,
        "A group has failed when every task score is below this. Where rewards pay nothing at a limit, what "
        "a limit ended counts as 0, and entries that it ended are not used.",
        ge=0,
        le=1,
    )
    max_share: float = knob(
        0.25,
        "Largest share of injected trajectories among those that a step trains on; groups that are skipped "
        "because their rewards are equal do not count. Beside a group (injection: likelihood), the group "
        "counts as if it were trained on.",
        ge=0,
        le=1,
    )
    max_family_share: float = knob(
        1.0,
        "The same within one family, of all of its trajectories in a step: where a whole family fails, "
        "this keeps its demonstrations from outweighing the other families. 1 = no such limit.",
        ge=0,
        le=1,
    )
    injection: Literal["recorded", "likelihood", "advantage"] = knob(
        "recorded",
        "How an entry enters a failed group. recorded = in a member's place: with its advantage and an "
        "importance ratio where a policy sampled it, else imitated with likelihood_weight. advantage = in a "
        "member's place, always with its advantage (ratio 1 without logprobs). likelihood = imitated beside "
        "the group, which is trained on as without it: not at all where all rewards are equal.",
    )
    max_advantage: float = knob(
        0.0,
        "What an injected entry's advantage is at most; in a group of eight that failed it is 2.5. 0 = no "
        "such limit.",
        ge=0,
    )
    sft_share: float = knob(
        0.0,
        "Accepted entries of the step's other tasks, whose groups did not fail, that are imitated beside "
        "them, as a share of the step's trajectories: so that what the policy knows is not forgotten.",
        ge=0,
        le=1,
    )
    max_uses: int = knob(4, "Uses of one entry per experiment.", ge=1)
    max_policy_age: int = knob(
        10_000,
        "Entries whose policy is older are not used. The age is known where both policies come from the same "
        "weights: this experiment's, those of a checkpoint that it began from, or of the one it was cloned "
        "from.",
        unit="policy versions",
        ge=0,
    )
    unknown_policy_age: Literal["reuse", "likelihood", "skip"] = knob(
        "likelihood",
        "Entries that a policy of unknown age sampled with the same tokenizer and prompt: likelihood = "
        "imitated without an importance ratio; reuse = with their own logprobs, however old they are; skip = "
        "not used.",
    )
    likelihood_weight: float = knob(
        0.5,
        "Weight of the NLL term for entries that are imitated: without behaviour logprobs (human, oracle, "
        "rendered again), or beside a group.",
        ge=0,
    )
    gold_first: bool = knob(True, "Prefer gold entries to accepted ones.")


class OptimiserConfig(Section):
    """The optimiser of the GRPO stage and its data layout."""

    name: Literal["adamw", "muon"] = knob("adamw", "muon: Muon for 2-D matrices, AdamW for the rest.")
    learning_rate: float = knob(1e-6, "AdamW rate.", gt=0, le=1)
    muon_learning_rate: float = knob(0.005, "Muon rate.", ge=0, le=1)
    weight_decay: float = knob(0.0, "Decoupled weight decay.", ge=0, le=1)
    beta1: float = knob(0.9, "AdamW: memory of the gradient.", ge=0, lt=1)
    beta2: float = knob(0.95, "AdamW: memory of its square.", ge=0, lt=1)
    vision_rate: float = knob(
        1.0, "Learning rate of the vision tower, as a factor of the text blocks'.", gt=0, le=100
    )
    merger_rate: float = knob(
        1.0, "Learning rate of the mergers between tower and text, as such a factor.", gt=0, le=100
    )
    warmup_steps: int = knob(0, "Steps of linear rise of the learning rate.", unit="steps", ge=0)
    decay: Literal["constant", "linear", "cosine"] = knob(
        "constant",
        "How the learning rate falls after the rise, until algorithm.num_steps; a limit in seconds may end "
        "the stage before.",
    )
    end_rate: float = knob(0.1, "With decay: the rate at the end, as a share of the highest.", ge=0, le=1)
    max_grad_norm: float = knob(1.0, "Gradient clipping.", gt=0)
    microbatch_size: int = knob(16, "Trajectories per forward-backward.", unit="trajectories", ge=1)
    packing: bool = knob(
        False,
        "Lay sequences end to end instead of padding them; microbatches are then cut by the two budgets.",
    )
    microbatch_tokens: int = knob(16_384, "With packing: tokens per forward-backward.", unit="tokens", ge=64)
    microbatch_patches: int = knob(
        65_536, "With packing: rows of image patches per forward-backward.", unit="patches", ge=64
    )
    num_processes: int = knob(1, "Processes of the trainer (FSDP2 shards).", ge=1, le=64)
    num_hosts: int = knob(1, "GPU hosts that they are spread over, as many on each.", ge=1, le=32)
    least_hosts: int = knob(
        0,
        "Minimum hosts to continue with after one was lost, with as many processes on each as before; "
        "0 = it waits for num_hosts.",
        ge=0,
        le=32,
    )
    seed: int = knob(0, "Seed of sampling, task order and initialisation.", ge=0)

    @property
    def processes_per_host(self) -> int:
        return self.num_processes // self.num_hosts


class ParallelConfig(Section):
    """How FSDP2 lays the model out over the processes."""

    activation_checkpointing: bool = knob(
        False, "Recompute the blocks in the backward pass: less memory, about a third more computing."
    )
    recomputed_share: float = knob(
        1.0, "With activation_checkpointing: the share of the blocks that are recomputed.", gt=0, le=1
    )
    reshard: Literal["always", "never"] = knob(
        "always",
        "always = gather a block's weights again for the backward pass; never = keep them for a whole step.",
    )
    reduce: Literal["microbatch", "step"] = knob(
        "microbatch",
        "When gradients are summed over the processes. step = once, faster; each process then holds all "
        "gradients. One process always does it once, where nothing is offloaded.",
    )
    cpu_offload: bool = knob(False, "Keep weights, gradients and optimiser in host memory.")
    compile_blocks: bool = knob(False, "torch.compile every block: a minute at the start, faster steps.")


class LoraConfig(Section):
    """Train low-rank adapters instead of the weights."""

    rank: int = knob(0, "Rank of the adapters; 0 = train the weights themselves.", ge=0, le=1024)
    alpha: float = knob(32.0, "Scale: an adapter's output is multiplied by alpha / rank.", gt=0)
    targets: tuple[str, ...] = knob(
        ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
        "Names of the linear layers of the text blocks that get one.",
    )
