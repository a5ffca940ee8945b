"""All checks of a valid config before it is queued: will it run here, when, for how long, on what?"""

from collections.abc import Iterator
from dataclasses import dataclass

from training.contracts.config import ExperimentConfig, OsworldConfig
from training.contracts.number_text import counted
from webapp.accounts.models import Team
from webapp.experiments.installation_limits import limit_problems
from webapp.experiments.models import ACTIVE_STATUSES, Experiment, ExperimentStatus
from webapp.experiments.pinned_models import with_pinned_models
from webapp.fleet.models import Worker, WorkerStatus
from webapp.fleet.queries.env_capacity import count_env_slots
from webapp.launch.preflight.check import Check
from webapp.launch.preflight.clip import clip_checks
from webapp.launch.preflight.duration import Duration, expected_duration
from webapp.launch.preflight.hosts import host_checks
from webapp.launch.preflight.model_and_folders import checkpoint_folder_check, model_checks, reference_checks
from webapp.launch.preflight.needs import Need, needs_of
from webapp.launch.preflight.osworld import osworld_warnings
from webapp.launch.preflight.tasks_and_replay import replay_checks, task_checks
from webapp.launch.preflight.token_budgets import budget_checks
from webapp.launch.preflight.unusual import unusual_values

GOOD_GROUP_SIZE = 4
"""With 2 or 3 members most groups of a weak or strong policy have equal rewards, thus no advantage."""


@dataclass(frozen=True, slots=True)
class Preflight:
    """The whole panel."""

    checks: tuple[Check, ...]
    queue_position: int
    """1 = next."""
    num_active: int
    duration: Duration
    needs: tuple[Need, ...] = ()
    """Of a preset for GPUs."""

    @property
    def may_launch(self) -> bool:
        return not any(check.level == "bad" for check in self.checks)

    @property
    def seconds(self) -> float:
        return self.duration.seconds

    @property
    def at_most_seconds(self) -> float:
        return self.duration.at_most

    @property
    def seconds_basis(self) -> str:
        return self.duration.basis


def run_preflight(config: ExperimentConfig, *, team: Team, preset: str = "", priority: int = 0) -> Preflight:
    """All checks, the place in the queue and the expected duration."""
    checks = [*all_checks(config, team), *unusual_values(config, preset)]
    order = {"bad": 0, "warning": 1, "good": 2, "info": 3}
    ahead = Experiment.objects.filter(status=ExperimentStatus.QUEUED, priority__gte=priority).count()
    return Preflight(
        checks=tuple(sorted(checks, key=lambda check: order[check.level])),
        queue_position=ahead + 1,
        num_active=Experiment.objects.filter(status__in=ACTIVE_STATUSES).count(),
        duration=expected_duration(config, team=team, preset=preset),
        needs=needs_of(config, checks),
    )


def all_checks(config: ExperimentConfig, team: Team) -> Iterator[Check]:
    """Every check in the order of the panel's questions."""
    for path, problem in limit_problems(config, team):
        yield Check("bad", "Not allowed on this installation", f"{problem}.", path)
    config = with_pinned_models(config, team)
    yield from model_checks(config)
    yield from budget_checks(config)
    yield from host_checks(config)
    yield from reference_checks(config)
    yield from task_checks(config, team)
    yield group_size_check(config)
    yield batch_check(config)
    yield from clip_checks(config)
    yield from desktop_checks(config)
    if isinstance(section := config.desktops.provider_section, OsworldConfig):
        for title, detail, path in osworld_warnings(section):
            yield Check("warning", title, detail, path)
    yield from replay_checks(config, team)
    yield checkpoint_folder_check(config)


def group_size_check(config: ExperimentConfig) -> Check:
    value = config.algorithm.group_size
    if value < GOOD_GROUP_SIZE:
        text = "Small groups often have equal rewards and then teach nothing; 4 or more is better."
        return Check("warning", f"Group size {value}", text, "algorithm.group_size")
    return Check("good", f"Group size {value}")


def batch_check(config: ExperimentConfig) -> Check:
    """How the samples of a step divide over updates, processes and microbatches."""
    algorithm = config.algorithm
    samples = algorithm.group_size * algorithm.groups_per_step
    share = samples // (config.optimiser.num_processes * algorithm.updates_per_batch)
    size = config.optimiser.microbatch_size
    title = f"{samples} trajectories per step"
    if config.optimiser.packing:
        return Check("good", title, f"Packed: at most {config.optimiser.microbatch_tokens} tokens at a time.")
    if share > size and share % size:
        text = (
            f"{share} per update and process are no multiple of the microbatch size {size}: one is smaller."
        )
        return Check("warning", title, text, "optimiser.microbatch_size")
    number = -(-share // size)
    return Check(
        "good", title, f"{counted(number, 'microbatch', 'microbatches')} per update on each process."
    )


def desktop_checks(config: ExperimentConfig) -> Iterator[Check]:
    slots, wanted = count_env_slots(), config.desktops.num_desktops
    if not slots:
        text = "No env worker is online; the experiment would wait for one. Start them with make up."
        yield Check("warning", "No desktops online", text, "desktops.num_desktops")
    elif slots < wanted:
        text = f"It will run with {slots} at a time, and take longer."
        yield Check("warning", f"{slots} of {wanted} desktops online", text, "desktops.num_desktops")
    else:
        yield Check("good", f"{wanted} of {slots} desktop slots")
    if not Worker.objects.filter(queue="gpu", status=WorkerStatus.ONLINE).exists():
        yield Check("warning", "No gpu worker online", "It stays queued until one starts (make up).")
