"""What the API says of experiments, and takes; configs are `training.contracts.config`'s own models."""

from datetime import datetime
from typing import Any

from ninja import Field, Schema

from training.contracts.config import ExperimentConfig
from training.contracts.outcome import SuccessRule
from webapp.api.paging import Page


class Me(Schema):
    """The caller."""

    username: str
    teams: dict[str, str]
    """Team name -> role."""


class PresetOut(Schema):
    """A starting point of the launch form."""

    name: str
    title: str
    summary: str
    config: ExperimentConfig


class StageOut(Schema):
    """A part of an experiment and how far it is."""

    name: str
    status: str
    done: int
    total: int
    unit: str
    started_at: datetime | None
    ended_at: datetime | None


class ExperimentRow(Schema):
    """An experiment in a list."""

    id: int
    name: str
    preset: str
    status: str
    stage: str
    step: int
    policy_version: int
    priority: int
    message: str
    tags: list[str]
    archived_at: datetime | None
    team: str = Field(alias="team.name")
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class EvaluationOut(Schema):
    """Success at one point and one temperature, with its 95 % Wilson interval."""

    name: str
    step: int
    policy_version: int
    split: str
    num_tasks: int
    samples_per_task: int
    num_requested: int | None = None
    """Trajectories; null, as `num_errored`, where it was not counted."""
    num_errored: int | None = None
    """Of these, without a score. The intervals hold whatever they would have been."""
    is_complete: bool = True
    """False: less than 95 % was scored. It chooses no best checkpoint."""
    num_samples: int
    """Scored trajectories."""
    num_success: int
    """By OSWorld's own rule: a full score, also where a limit ended the trajectory."""
    success: float
    low: float
    high: float
    num_solved_at_limit: int | None = None
    """Of `num_success`; null, like all that follows, where it was not counted."""
    solved: float | None = None
    """Share that the agent solved and ended, with its interval."""
    solved_low: float | None = None
    solved_high: float | None = None
    mean_score: float | None = None
    """Partial scores count in part."""
    truncated_share: float | None = None
    """Of the scored trajectories, those that a limit ended."""
    unparsable_share: float | None = None
    """Of their turns, those without a parsable action."""
    temperature: float | None = None
    """0 = greedy; null when it was not recorded."""
    eyes: dict[str, Any] | None = None
    """What measured it (engine, version, kernels, precision, prompt, budgets), and its eye test."""
    eyes_text: str = ""
    """The same in a line."""


class PairedChangeOut(Schema):
    """What changed between two evaluations of the same tasks."""

    num_tasks: int
    fixed: int
    """Tasks solved more often than before."""
    regressed: int
    difference: float
    """Of the mean share of solved samples."""
    low: float
    high: float
    """95 % interval over tasks, of the same test as p."""
    p: float
    """Randomisation test over tasks: McNemar's exact test where each has one sample."""


class SuccessChangeOut(Schema):
    """From the evaluation before the first step to the newest one."""

    sampled: PairedChangeOut | None
    greedy: PairedChangeOut | None
    is_sharpened: bool
    """Sampled success rose by more than 10 points, greedy success did not rise: nothing was learned."""
    rule: SuccessRule
    """By which successes are counted: ended by the agent, or OSWorld's own, the state at a limit too."""
    differences: list[str] = []
    """Between what measured both (engine, version, kernels, precision, prompt, budgets), in words."""


class VerdictOut(Schema):
    """What came of a run, and the one thing to change."""

    outcome: str
    """running, unknown, learned, partly, sharpened, flat, worse, collapsed, solved or babbles."""
    since_step: int | None
    text: str
    """The verdict as a sentence, with its evidence and what is odd about the settings."""
    remedy: dict[str, str]
    """Dotted setting -> the value of a clone that is likely to do better; empty = none is known."""


class ExperimentDetail(ExperimentRow):
    """One experiment."""

    note: str
    config: dict[str, Any]
    stages: list[StageOut]
    evaluations: list[EvaluationOut]
    success_change: SuccessChangeOut | None
    success_change_of_state: SuccessChangeOut | None
    """The same by OSWorld's own rule."""
    """null until there are two evaluations."""
    verdict: VerdictOut | None
    """What came of the run; null for experiments that only measure, and before the first start."""
    waiting_because: str
    """Why a queued experiment does not run yet; "" otherwise."""


class ExperimentIn(Schema):
    """What to launch: a preset, changed by `config` (nested, only what differs), or a whole `yaml`."""

    name: str = Field(min_length=1, max_length=120)
    preset: str = ""
    config: dict[str, Any] = {}
    yaml: str = Field("", max_length=100_000)
    priority: int = Field(0, ge=-100, le=100)
    note: str = ""


class ExperimentChanges(Schema):
    """What to change of one; null leaves a thing as it is."""

    name: str | None = Field(None, min_length=1, max_length=120)
    note: str | None = Field(None, max_length=4000)
    tags: list[str] | None = None
    archived: bool | None = None


class CheckOut(Schema):
    """One answer of the pre-flight panel."""

    level: str
    title: str
    detail: str
    path: str


class PreflightOut(Schema):
    """What the launch page says before launching."""

    may_launch: bool
    checks: list[CheckOut]
    queue_position: int
    seconds: float
    at_most_seconds: float
    seconds_basis: str


class ExperimentPage(Page[ExperimentRow]):
    """Newest first; `next` is the `after` of the next page."""


class Series(Schema):
    """One metric: parallel lists; a value that is no finite number is None."""

    steps: list[int]
    values: list[float | None]


class MetricsPage(Schema):
    """Series by name; `next` is the `after` of the next page, None on the last one."""

    series: dict[str, Series]
    next: str | None
