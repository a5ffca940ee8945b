"""What guards look at, and the alarm that one raises."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from training.contracts.config import ExperimentConfig
from training.contracts.trainer_reports import Alarm
from training.contracts.types import Group
from training.loop.alarm_history import AlarmHistory
from training.rollouts.temperature_schedule import temperature_at

SOLVED_SHARE = 0.9
"""Share of a step's rollouts, solved, from which equal rewards and a sure policy are what was aimed at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFacts:
    """What the guards look at."""

    step: int
    metrics: dict[str, float]
    groups: Sequence[Group]
    """As the desktops returned them."""
    was_skipped: bool
    """The gradient of an update was not finite."""
    history: AlarmHistory
    """Of the steps before this one."""
    config: ExperimentConfig

    @property
    def is_solved(self) -> bool:
        """True when the agent solved and ended nearly every rollout of the step."""
        return self.metrics["rollout/solved"] >= SOLVED_SHARE

    @property
    def temperature(self) -> float:
        """That the step's rollouts were sampled at."""
        return temperature_at(self.config.sampling, self.step - 1)


Guard = Callable[[StepFacts], Alarm | None]


def alarm_above(
    name: str,
    facts: StepFacts,
    value: float,
    limit: float,
    message: str,
    remedy: str,
    severity: Literal["warning", "critical"] = "warning",
) -> Alarm | None:
    """None while `value` is at most `limit`."""
    return None if value <= limit else alarm_of(name, facts, value, limit, message, remedy, severity)


def alarm_of(
    name: str,
    facts: StepFacts,
    value: float,
    limit: float,
    message: str,
    remedy: str,
    severity: Literal["warning", "critical"] = "warning",
) -> Alarm:
    return Alarm(
        name=name,
        step=facts.step,
        value=value,
        limit=limit,
        message=message,
        remedy=remedy,
        severity=severity,
    )
