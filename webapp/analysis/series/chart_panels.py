"""Which charts the experiment page has, with what each shows."""

from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any

from training.contracts.config.algorithm import imitates_successes
from webapp.experiments.models import Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One chart. A name that ends with "/" takes every series of that area."""

    title: str
    group: str
    """Heading that it stands below; panels of one group follow each other."""
    names: tuple[str, ...]
    help: str
    """What it shows and what to look for, in a sentence or two."""
    unit: str = ""
    kind: str = "line"
    """ "share" fixes the axis to 0..1; "log" is logarithmic."""
    limit_of: str = ""
    """Knob whose value is shown as the alarm's limit."""
    help_of_imitation: str = ""
    """Instead of `help` where successes are imitated and advantages play no part; "" = the same."""


LEARNING, STABILITY, ASYNCHRONY, TIME, SFT = (
    "Learning",
    "Stability",
    "Engine and asynchrony",
    "Time",
    "SFT",
)
PANELS = (
    Panel(
        title="Success and reward",
        group=LEARNING,
        names=("rollout/solved", "rollout/success", "rollout/reward_mean"),
        kind="success",
        help="Of the step's own rollouts. Solved: the agent ended it. Success counts those at a limit too, "
        "as OSWorld does. Diamonds are held-out evaluations, solved, with their 95 % interval.",
    ),
    Panel(
        title="Success by family",
        group=LEARNING,
        names=("success/",),
        kind="share",
        help="Solved, of the step's rollouts. A family that stays at 0 or 1 teaches nothing.",
        help_of_imitation="Solved, of the step's rollouts. Of a family that stays at 0 nothing is imitated.",
    ),
    Panel(
        title="Reward terms",
        group=LEARNING,
        names=("reward/",),
        help="Mean of every named part of the reward. One that rises while success does not is being gamed.",
    ),
    Panel(
        title="Groups without variance",
        group=LEARNING,
        names=("rollout/zero_variance_fraction",),
        kind="share",
        limit_of="alarms.zero_variance_fraction",
        help="Groups whose rewards are all equal have no advantage: too easy, too hard, or too small.",
        help_of_imitation="Groups whose rewards are all equal: too easy, too hard, or too small. Those that "
        "were solved as a whole are imitated all the same.",
    ),
    Panel(
        title="Spread of advantages",
        group=LEARNING,
        names=("advantage/std",),
        help="Standard deviation over the step's trajectories. At 0 the step teaches nothing.",
        help_of_imitation="Standard deviation over the step's trajectories; not used by this algorithm.",
    ),
    Panel(
        title="Turns and tokens",
        group=LEARNING,
        names=("rollout/turns_mean", "rollout/completion_tokens_mean"),
        help="Mean turns per trajectory, and mean tokens per completion.",
    ),
    Panel(
        title="Replay",
        group=LEARNING,
        names=("replay/failed_groups", "replay/injected", "replay/injected_share", "replay/skipped"),
        help="Groups without a success, the replay entries that were injected into groups, and those that "
        "could not be used (their own pages say why).",
    ),
    Panel(
        title="Loss",
        group=STABILITY,
        names=("loss/total", "loss/policy", "loss/kl", "loss/likelihood"),
        help="Policy-gradient losses hover around 0; their level says little, jumps say something.",
    ),
    Panel(
        title="Entropy",
        group=STABILITY,
        names=("loss/entropy",),
        unit="nats",
        help="Of the next token at completion positions. Falling to nearly 0 is a collapse.",
    ),
    Panel(
        title="Gradient norm",
        group=STABILITY,
        names=("optimiser/grad_norm",),
        kind="log",
        help="Before clipping. The alarm compares it with its running median.",
    ),
    Panel(
        title="Importance ratio",
        group=STABILITY,
        names=("policy/importance_ratio_mean",),
        help="exp(policy_logprobs - behaviour_logprobs); 1 when the policy has not changed since sampling.",
    ),
    Panel(
        title="Clipped and corrected tokens",
        group=STABILITY,
        names=("policy/clip_fraction", "policy/correction_cut_fraction"),
        kind="share",
        help="Tokens without gradient because of clipping, and those that the correction cut or masked.",
    ),
    Panel(
        title="Parse errors, truncated, errored",
        group=STABILITY,
        names=(
            *("rollout/parse_error_rate", "rollout/truncation_rate", "rollout/solved_at_limit"),
            "rollout/errored_rate",
        ),
        kind="share",
        help="Errored trajectories are never scored; above 5 % something in the infrastructure is broken.",
    ),
    Panel(
        title="Left out of training",
        group=STABILITY,
        names=("dropped/",),
        unit="trajectories",
        help="Trajectories that cannot be trained on, by reason; the trainer's log names each.",
    ),
    Panel(
        title="Staleness",
        group=ASYNCHRONY,
        names=("async/staleness_mean", "async/staleness_max"),
        unit="policy versions",
        limit_of="algorithm.max_staleness",
        help="Policy versions between sampling and training; the line is the bound.",
    ),
    Panel(
        title="Waiting",
        group=ASYNCHRONY,
        names=("async/trainer_wait_s", "async/engine_idle_s"),
        unit="s per step",
        help="Trainer waiting for rollouts, and engine with nothing to do. A trainer that waits wants more "
        "desktops or engines; an idle engine wants a larger max_staleness.",
    ),
    Panel(
        title="Dropped and masked for age",
        group=ASYNCHRONY,
        names=("async/dropped", "async/masked_tokens"),
        help="Trajectories that left their group and tokens that were masked, since they exceeded "
        "max_staleness.",
    ),
    Panel(
        title="Engine and trainer drift",
        group=ASYNCHRONY,
        names=("sync/drift", "policy/logprob_gap"),
        unit="nats",
        limit_of="alarms.logprob_drift",
        help="Mean difference of logprobs: on the canary after each weight sync, and on what the step's own "
        "rollouts sampled. Of older policy versions, it holds the policy's own movement, too.",
    ),
    Panel(
        title="Seconds per step",
        group=TIME,
        names=("time/",),
        unit="s",
        help="The whole step and its parts.",
    ),
    Panel(
        title="Weight sync",
        group=TIME,
        names=("sync/seconds",),
        unit="s",
        help="Until the engine samples with the trainer's new weights.",
    ),
    Panel(
        title="SFT loss",
        group=SFT,
        names=("sft/loss", "sft/entropy"),
        unit="nats",
        help="Over the tokens of demonstrations.",
    ),
    Panel(
        title="SFT gradient norm",
        group=SFT,
        names=("sft/grad_norm",),
        kind="log",
        help="Before clipping.",
    ),
    Panel(
        title="SFT held-out success",
        group=SFT,
        names=("sft/success",),
        kind="share",
        limit_of="sft.stop_at_success",
        help="SFT stops when it reaches the line. Partial scores count in part.",
    ),
)


def panels_of(experiment: Experiment) -> list[dict[str, Any]]:
    """The panels with the alarm limits of this experiment's config."""
    settings = experiment.settings
    is_imitation = imitates_successes(settings.algorithm)
    found = []
    for panel in PANELS:
        row = asdict(panel)
        of_imitation = row.pop("help_of_imitation")
        row["limit"] = attrgetter(panel.limit_of)(settings) if panel.limit_of else None
        found.append(row | ({"help": of_imitation} if is_imitation and of_imitation else {}))
    return found
