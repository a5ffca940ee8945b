"""What guards remember of earlier steps; saved with every checkpoint."""

from dataclasses import dataclass, field
from typing import Any

from training.contracts.config.alarm_limits import AlarmConfig


@dataclass(slots=True, kw_only=True)
class AlarmHistory:
    """What guards remember of earlier steps."""

    entropy: float | None = None
    """Of the newest step that had one: without an update there is none."""
    max_entropy: float = 0.0
    """Since `temperature` is what it is: the same weights have another entropy at another one."""
    temperature: float | None = None
    """That the steps were sampled at; None = not recorded yet."""
    grad_norms: list[float] = field(default_factory=list)
    """Of the last 50 steps."""
    parse_error_rates: list[float] = field(default_factory=list)
    """Of the last 50 steps."""
    zero_reward_steps: int = 0
    steps_without_update: int = 0
    settled_steps: int = 0
    last_checkpoint_step: int = 0

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def max_entropy_at(self, temperature: float) -> float:
        """Maximum of the steps that were sampled at `temperature` since it last changed; 0 = none was."""
        return self.max_entropy if self.temperature in (None, temperature) else 0.0

    def entropy_at(self, metrics: dict[str, float], temperature: float) -> float | None:
        """Of a step; of one that made no update, that of the same weights before."""
        same = self.entropy if self.temperature in (None, temperature) else None
        return metrics.get("loss/entropy", same)

    def remember(self, metrics: dict[str, float], temperature: float, limits: AlarmConfig) -> None:
        """Take a finished step, sampled at `temperature`, into the history."""
        self.entropy = self.entropy_at(metrics, temperature)
        self.max_entropy, self.temperature = self.max_entropy_at(temperature), temperature
        self.max_entropy = max(self.max_entropy, metrics.get("loss/entropy", 0.0))
        if "optimiser/grad_norm" in metrics:
            self.grad_norms = [*self.grad_norms, metrics["optimiser/grad_norm"]][-50:]
        self.parse_error_rates = [*self.parse_error_rates, metrics["rollout/parse_error_rate"]][-50:]
        failed = metrics["rollout/success"] == 0
        self.zero_reward_steps = self.zero_reward_steps + 1 if failed else 0
        had_update = "optimiser/grad_norm" in metrics
        self.steps_without_update = 0 if had_update else self.steps_without_update + 1
        self.settled_steps = self.settled_steps + 1 if is_settled(self.entropy, metrics, limits) else 0


def is_settled(entropy: float | None, metrics: dict[str, float], limits: AlarmConfig) -> bool:
    """Whether a step's policy was sure and its groups alike."""
    is_sure = entropy is not None and entropy < limits.settled_entropy
    return is_sure and metrics["rollout/zero_variance_fraction"] > limits.settled_flat
