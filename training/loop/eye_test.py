"""The trainer's half of the eye test: does the engine read as the trainer does, before a number is made."""

import logging
import time
from collections.abc import Callable

from training.contracts.config import ExperimentConfig
from training.contracts.eye_test import EyeTest, EyeTestAnswer, EyeTestRequest, Gap
from training.contracts.trainer_reports import Alarm
from training.contracts.weight_requests import Canary
from training.distributed.interrupts import on_main
from training.loop.stage_context import Experiment

logger = logging.getLogger(__name__)
EXACT = 2e-4
"""Nats that engine and trainer may differ where both compute in fp32."""
ROUNDED = 2.0
"""Times `alarms.logprob_drift` elsewhere: the answers are given, so some of their tokens are unlikely, and
rounding moves those most. SmolLM2 in bf16 was 0.051 nats away on a CPU."""
EVERY = 8
"""Of the greedy answers, every such one is scored by the trainer, too."""


class EyesDiffer(ValueError):
    """Raised where `evaluation.eye_test` is stop and the engine reads otherwise than the trainer."""


def eye_test(experiment: Experiment) -> EyeTest | None:
    """Of the weights that the engine has now, made once; None where it is off. A collective.

    Raises EyesDiffer.
    """
    config, state = experiment.config, experiment.state
    if config.evaluation.eye_test == "off":
        return None
    if experiment.eyes is not None and experiment.eyes.policy_version == state.policy_version:
        return experiment.eyes
    started = time.monotonic()
    request = EyeTestRequest(is_whole=experiment.world.device.type == "cuda")

    def look() -> EyeTestAnswer | None:
        return experiment.coordinator.eye_test(request) if experiment.coordinator else None

    answer = on_main(experiment.world, look)
    assert answer is not None, "rank 0 has a coordinator"
    experiment.eyes = judged(answer, experiment.sync.drift, config, state.policy_version, started)
    if problem := experiment.eyes.problem:
        alarm = eye_alarm(experiment.eyes, state.grpo_step)
        experiment.report(lambda c: c.report_alarms(alarm.step, [alarm]))
        settle(problem, config)
    return experiment.eyes


def judged(
    answer: EyeTestAnswer,
    gap: Callable[[Canary], float],
    config: ExperimentConfig,
    policy_version: int,
    started: float,
) -> EyeTest:
    """What the trainer, by `gap`, makes of what the engine read. A collective where `gap` is."""
    gaps = [Gap(name=glimpse.name, nats=gap(glimpse.canary)) for glimpse in answer.glimpses]
    if answer.targets:
        clicked = [gap(glimpse.canary) for glimpse in answer.targets[::EVERY]]
        gaps.append(Gap(name="its greedy answers", nats=sum(clicked) / len(clicked)))
    drift = config.alarms.logprob_drift
    is_exact = config.model.dtype == "float32" and answer.facts.precision.startswith("float32")
    found = EyeTest(
        facts=answer.facts,
        gaps=tuple(gaps),
        limit=min(EXACT, drift) if is_exact else ROUNDED * drift,
        policy_version=policy_version,
        seconds=round(time.monotonic() - started, 2),
        num_targets=len(answer.targets),
        num_hit=sum(glimpse.is_hit for glimpse in answer.targets),
    )
    logger.info("eye test of version %d in %.1f s: %s", policy_version, found.seconds, found.text)
    return found


def eye_alarm(found: EyeTest, step: int) -> Alarm:
    """What the page shows of a test that failed."""
    worst = max(found.failed, key=lambda gap: gap.nats)
    return Alarm(
        name="eye_test",
        step=step,
        value=worst.nats,
        limit=found.limit,
        message=found.problem,
        remedy="Do not compare scores of this engine with others: choose another engine.attention_backend, "
        "engine.dtype or version of the engine.",
        severity="critical",
    )


def settle(problem: str, config: ExperimentConfig) -> None:
    """Go on with a warning, or raise EyesDiffer: as `evaluation.eye_test` says."""
    if config.evaluation.eye_test == "stop":
        raise EyesDiffer(f"evaluation.eye_test: {problem}")
    logger.warning("%s: evaluations are stamped with it", problem)
