"""Which experiments' weights come from which: how many policy versions lie between two policies.

An experiment's versions follow its first weights. Those are a checkpoint of another experiment (`model.path`
names its folder), or those of the experiment that it was cloned from, when both name the same model.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from training.planning.model_folders import TINY_RANDOM
from webapp.experiments.models import CheckpointRecord, Experiment
from webapp.experiments.queries.checkpoints import MODEL_FOLDER

MAX_DEPTH = 32
"""Experiments in a row; more are not followed."""


@dataclass(frozen=True, slots=True)
class Place:
    """Weights on the way back: an experiment, and the version at which the way enters it."""

    experiment_id: int
    version: int


class WeightLineage:
    """Ways back to the first weights of a team's experiments; reads them once, when it is first asked."""

    def __init__(self, team_id: int) -> None:
        self._team_id = team_id

    def versions_between(self, one: Place, other: Place) -> int | None:
        """Policy versions from `one` to `other` over the newest weights that both come from; None without."""
        passed = 0
        for mine in self._way_back(one):
            steps = 0
            for place in self._way_back(other):
                if place.experiment_id == mine.experiment_id:
                    return passed + steps + abs(mine.version - place.version)
                steps += place.version
            passed += mine.version
        return None

    def _way_back(self, place: Place) -> Iterator[Place]:
        """Lazily: within one experiment, nothing needs to be read."""
        here: Place | None = place
        for _ in range(MAX_DEPTH):
            if here is None:
                return
            yield here
            here = self._starts.get(here.experiment_id)

    @cached_property
    def _starts(self) -> dict[int, Place]:
        """Experiment -> the other experiment's weights that it began with."""
        columns = ("pk", "cloned_from_id", "model_path", "model_seed")
        rows = list(Experiment.objects.filter(team_id=self._team_id).values_list(*columns))
        first = {pk: _first_weights(path, seed) for pk, _, path, seed in rows}
        checkpoints = _checkpoints_at({path for path, _ in first.values()})
        starts = {}
        for pk, origin, _, _ in rows:
            saved = checkpoints.get(first[pk][0])
            if saved is not None and saved.experiment_id != pk:
                starts[pk] = saved
            elif origin is not None and origin < pk and first.get(origin) == first[pk]:
                starts[pk] = Place(origin, 0)
        return starts


def _first_weights(path: str | None, seed: str | None) -> tuple[str, str | None]:
    """The model's folder, and the seed where it is made from one."""
    folder = (path or "").rstrip("/").removesuffix(f"/{MODEL_FOLDER}")
    return folder, seed if folder == TINY_RANDOM else None


def _checkpoints_at(names: Iterable[str]) -> dict[str, Place]:
    """Folder -> the weights in it; shipped models go by a name without a slash."""
    if not (folders := [name for name in names if "/" in name]):
        return {}
    rows = CheckpointRecord.objects.filter(path__in=folders).order_by("pk")
    return {
        path: Place(experiment_id, version)
        for path, experiment_id, version in rows.values_list("path", "experiment_id", "policy_version")
    }
