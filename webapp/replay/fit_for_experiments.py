"""How a replay entry would enter an experiment: as it was sampled, rendered again, or not at all.

It says beforehand what `training.rollouts.replay_admission` decides, which alone knows whether every action
can be written; what it turned down is shown as it was reported.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import OuterRef, QuerySet, Subquery

from training.contracts.context_fingerprint import differences
from training.contracts.types import Source
from webapp.experiments.models import Experiment
from webapp.experiments.queries.weight_lineage import Place, WeightLineage
from webapp.replay.models import ReplayEntry, ReplaySkipRecord
from webapp.trajectories.models import Trajectory

MAX_SHOWN = 5
LIKELIHOOD = "rendered again, likelihood"
AUTHORS = {Source.HUMAN: "Human demonstration", Source.ORACLE: "Oracle demonstration"}


@dataclass(frozen=True)
class Fit:
    """What would become of an entry in one experiment, in words."""

    experiment: Experiment
    tone: str
    """good | warning"""
    form: str
    age: str
    """Of its policy."""


def experiments_of(team_id: int) -> QuerySet[Experiment]:
    """The team's experiments that train, newest first, with `fingerprint`: of what they sampled last."""
    newest = Trajectory.objects.filter(experiment=OuterRef("pk"), fingerprint__isnull=False).order_by("-id")
    rows = Experiment.objects.filter(team_id=team_id, evaluates=None).order_by("-id")
    return rows.annotate(fingerprint=Subquery(newest.values("fingerprint")[:1]))


def target_experiment(team_id: int) -> Experiment | None:
    """The one that the inbox judges entries for: the team's newest."""
    return experiments_of(team_id).first()


def fits_of(entry: ReplayEntry) -> list[Fit]:
    """The newest experiments on the entry's task set, each with what would become of it there."""
    task_set = entry.trajectory.task.task_set.name
    newest = experiments_of(entry.team_id).filter(config__tasks__task_set=task_set)[:MAX_SHOWN]
    lineage = WeightLineage(entry.team_id)
    return [fit_of(entry, experiment, lineage, entry.skips.all()) for experiment in newest]


def fit_of(
    entry: ReplayEntry,
    experiment: Experiment,
    lineage: WeightLineage,
    skips: Iterable[ReplaySkipRecord] = (),
) -> Fit:
    """`experiment`: of `experiments_of`. `skips`: the entry's."""
    versions = policy_age(entry.trajectory, experiment, lineage)
    age = "" if entry.trajectory.source in AUTHORS else _age_words(versions)
    skipped = next((row for row in skips if row.experiment_id == experiment.pk), None)
    if skipped is not None:
        times = f" ({skipped.num_times} times)" if skipped.num_times > 1 else ""
        return Fit(experiment, "warning", f"not used: {skipped.message}{times}", age)
    tone, form = _form(entry.trajectory, experiment, versions)
    return Fit(experiment, tone, form, age)


def policy_age(trajectory: Trajectory, experiment: Experiment, lineage: WeightLineage) -> int | None:
    """Policy versions between the one that sampled `trajectory` and the experiment's now.

    None when no policy did, or the two have no weights in common.
    """
    if trajectory.policy_version is None or trajectory.experiment_id is None:
        return None
    if trajectory.source != Source.POLICY:
        return None
    recorded = Place(trajectory.experiment_id, trajectory.policy_version)
    return lineage.versions_between(recorded, Place(experiment.pk, experiment.policy_version))


def _form(trajectory: Trajectory, experiment: Experiment, versions: int | None) -> tuple[str, str]:
    if (author := AUTHORS.get(Source(trajectory.source))) is not None:
        return "good", f"{author}: enters by likelihood"
    own: str | None = experiment.fingerprint  # type: ignore[attr-defined]
    if not own:
        return "warning", f"compatibility known after #{experiment.pk}'s first rollout"
    if not trajectory.fingerprint:
        return "warning", f"{LIKELIHOOD}: recorded without its tokenizer and prompt"
    if changed := differences(trajectory.fingerprint, own):
        return "warning", f"{LIKELIHOOD}: {', '.join(changed)}"
    replay = experiment.settings.replay
    if versions is None and replay.unknown_policy_age != "reuse":
        skips = replay.unknown_policy_age == "skip"
        return "warning", "not used: its policy's age is unknown" if skips else LIKELIHOOD
    if versions is not None and versions > replay.max_policy_age:
        return "warning", f"not used: its policy is older than {replay.max_policy_age} versions"
    return "good", LIKELIHOOD if replay.injection == "likelihood" else "reused as sampled"


def _age_words(versions: int | None) -> str:
    if versions is None:
        return "unknown"
    return f"{versions} version{'' if versions == 1 else 's'}"
