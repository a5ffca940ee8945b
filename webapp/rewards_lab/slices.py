"""What a preset is tried on: scored trajectories of an experiment, or of the replay buffer.

Only what a reward depends on is read: 100 000 turns are there in seconds, and the last slices stay in memory.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Sum

from training.contracts.config import DesktopConfig, RewardConfig
from training.contracts.config.reward_presets import WeightedTerm
from training.contracts.observed_text import MeasuredTurn
from training.contracts.outcome import Outcome, outcome_of
from training.contracts.types import Action, Purpose, TrajectoryStatus
from training.rewards.compute import term_value, weigh
from training.rewards.expressions import TermError
from training.rewards.term import ScoredTrajectory, TermValue, TurnFacts, facts_of_action, telling_action
from webapp.experiments.models import Experiment, TaskRecord
from webapp.experiments.queries.rows_behind_resume import lost_trajectories
from webapp.experiments.stored_config import read_stored
from webapp.lib.request_values import BadValue, row_id
from webapp.replay.models import USABLE_VERDICTS, ReplayEntry
from webapp.trajectories.models import Trajectory, TurnRecord

MAX_TURNS = 100_000
"""Of the newest trajectories of a slice."""
MAX_EXPERIMENTS = 50
SCORED = (TrajectoryStatus.TERMINATED, TrajectoryStatus.TRUNCATED)


@dataclass(frozen=True, slots=True)
class StoredTrajectory:
    pk: int
    group_id: int
    task_id: int
    reward: float
    """As it was stored."""
    own: RewardConfig | None
    """What its experiment rewards with; None without an experiment."""
    outcome: Outcome | None
    facts: ScoredTrajectory


@dataclass(slots=True)
class StoredSlice:
    """Trajectories with all that rewards depend on, and the values of the terms that were asked for."""

    trajectories: list[StoredTrajectory]
    num_turns: int
    num_left_out: int
    """Older ones, beyond MAX_TURNS."""
    _values: dict[WeightedTerm, list[float]] = field(default_factory=dict)

    def values_of(self, row: WeightedTerm) -> list[float]:
        """The term's value of every trajectory; a weight does not change it. Raises BadValue."""
        key = row.model_copy(update={"weight": 0.0, "is_partial": False})
        if key not in self._values:
            self._values[key] = [_value(row, each) for each in self.trajectories]
        return self._values[key]


def _value(row: WeightedTerm, stored: StoredTrajectory) -> float:
    try:
        return term_value(row, stored.facts).value
    except TermError as error:
        raise BadValue(row.term, f"{error} (trajectory {stored.pk})") from error


def slice_choices(team_id: int) -> list[tuple[str, str]]:
    """(key, name) of every slice that the team can choose: experiments with something scored."""
    scored = Trajectory.objects.filter(experiment=OuterRef("pk"), status__in=SCORED, score__isnull=False)
    rows = (
        Experiment.objects.filter(Exists(scored), team_id=team_id).order_by("-pk").values_list("pk", "name")
    )
    found = [("buffer", "Replay buffer: accepted and gold"), ("buffer-all", "Replay buffer: all entries")]
    for pk, name in rows[:MAX_EXPERIMENTS]:
        found += [
            (f"train-{pk}", f"#{pk} {name}: training"),
            (f"evaluation-{pk}", f"#{pk} {name}: evaluations"),
        ]
    return found


def newest_scored(team_id: int, slices: Sequence[tuple[str, str]]) -> str:
    """The first experiment's slice with something to try a reward on, else all entries of the buffer."""
    of_experiments = [key for key, _ in slices[2:]]
    return next((key for key in of_experiments if rows_of(team_id, key).exists()), "buffer-all")


def rows_of(team_id: int, key: str) -> QuerySet[Trajectory]:
    """Scored trajectories of a slice that still have their turns. Raises BadValue."""
    rows = Trajectory.objects.filter(
        team_id=team_id, status__in=SCORED, pruned_at=None, reward__isnull=False, score__isnull=False
    )
    if key in ("buffer", "buffer-all"):
        entries = ReplayEntry.objects.filter(team_id=team_id)
        if key == "buffer":
            entries = entries.filter(verdict__in=USABLE_VERDICTS)
        return rows.filter(pk__in=entries.values("trajectory"))
    kind, _, number = key.partition("-")
    pk = row_id(number)
    if kind not in ("train", "evaluation") or pk is None:
        raise BadValue("slice", "choose one of the list")
    if kind == "evaluation":
        return rows.filter(experiment_id=pk, purpose=Purpose.EVALUATION)
    return rows.filter(experiment_id=pk, purpose=Purpose.TRAIN).exclude(lost_trajectories())


def load_slice(team_id: int, key: str) -> StoredSlice:
    """The newest trajectories of a slice, at most MAX_TURNS turns of them; read once."""
    state = rows_of(team_id, key).aggregate(num=Count("pk"), sum=Sum("pk"), newest=Max("ended_at"))
    return _load(team_id, key, (state["num"], state["sum"], state["newest"]))


@lru_cache(maxsize=3)
def _load(team_id: int, key: str, state: tuple) -> StoredSlice:
    """`state` says that it is still the same slice: number of rows, sum of their ids, newest end."""
    columns = (
        "pk",
        "group_id",
        "task_id",
        "experiment_id",
        "num_turns",
        "status",
        "score",
        "reward",
        "group__desktops",
        "milestones",
    )
    rows: list[tuple] = []
    num_turns = 0
    for row in rows_of(team_id, key).order_by("-pk").values_list(*columns).iterator(chunk_size=2000):
        num_turns += row[4]
        if num_turns > MAX_TURNS and rows:
            break
        rows.append(row)
    oldest = rows[-1][0] if rows else 0
    facts = _facts(rows_of(team_id, key).filter(pk__gte=oldest))
    experiments = {row[3] for row in rows}
    configs = {each.pk: each.settings for each in Experiment.objects.filter(pk__in=experiments)}
    specs = TaskRecord.objects.filter(pk__in={row[2] for row in rows})
    tasks = {
        pk: (limit, len(milestones or ()))
        for pk, limit, milestones in specs.values_list("pk", "spec__max_turns", "spec__milestones")
    }
    found = []
    for pk, group_id, task_id, experiment_id, _, status, score, reward, desktops, milestones in rows:
        config = configs.get(experiment_id)
        machine = config.desktops if config else read_stored(DesktopConfig, desktops)
        limit, num_milestones = tasks.get(task_id, (None, 0))
        reached = tuple(one["turn"] for one in milestones)
        scored = ScoredTrajectory(
            tuple(facts[pk]), score, limit or machine.max_turns, reached, num_milestones
        )
        own = config.rewards if config else None
        outcome = outcome_of(TrajectoryStatus(status), score)
        found.append(StoredTrajectory(pk, group_id, task_id, reward, own, outcome, scored))
    return StoredSlice(found, sum(map(len, facts.values())), state[0] - len(rows))


def _facts(rows: QuerySet[Trajectory]) -> dict[int, list[TurnFacts]]:
    """Trajectory -> its turns, as `row_to_types.trajectory_of` counts them: a screenshot alone is none."""
    turns = TurnRecord.objects.filter(trajectory__in=rows.values("pk"))
    turns = turns.exclude(Q(action__isnull=True) & Q(completion__isnull=True))
    columns = turns.order_by("trajectory_id", "index").values_list(
        "trajectory_id", "action", "earlier_actions", "action_error", "screen_changed", "measured"
    )
    found: dict[int, list[TurnFacts]] = defaultdict(list)
    for pk, action, earlier, error, changed, measured in columns.iterator(chunk_size=5000):
        parsed = [Action.model_validate(one) for one in (*(earlier or ()), action) if one]
        facts = MeasuredTurn.model_validate(measured) if measured is not None else None
        found[pk].append(facts_of_action(telling_action(parsed), error or None, changed, facts))
    return found


@dataclass(frozen=True, slots=True)
class Rewarded:
    """Every trajectory of a slice under one preset."""

    rewards: list[float]
    contributions: dict[str, list[float]]
    """Term -> its part of every reward."""


def reward_slice(stored: StoredSlice, rewards: RewardConfig) -> Rewarded:
    """The whole slice under `rewards`, by the same function as rollouts. Raises BadValue."""
    found, parts = [], defaultdict(list)
    for reward, terms in _weighed(stored, rewards, range(len(stored.trajectories))):
        found.append(reward)
        for term in terms[: len(rewards.terms.terms)]:
            parts[term.name].append(term.contribution)
    return Rewarded(found, dict(parts))


def _weighed(stored: StoredSlice, rewards: RewardConfig, places: range | list[int]) -> Iterator[tuple]:
    columns = [stored.values_of(row) for row in rewards.terms.terms]
    for place in places:
        yield weigh(rewards, [TermValue(column[place]) for column in columns])


@dataclass(frozen=True, slots=True)
class Parity:
    """Stored rewards against their own presets, computed again."""

    num_checked: int
    num_exact: int
    num_without: int
    """Rewarded elsewhere: imports and demonstrations, which have no experiment."""
    different: list[tuple[int, float, float]]
    """(trajectory, stored, computed) of the first ones."""


def own_parity(stored: StoredSlice) -> Parity:
    """Does every stored reward come out again, to the last bit?"""
    by_own: dict[str, list[int]] = defaultdict(list)
    configs: dict[str, RewardConfig] = {}
    for place, each in enumerate(stored.trajectories):
        if each.own is not None:
            key = each.own.model_dump_json()
            configs[key] = each.own
            by_own[key].append(place)
    different = []
    for key, places in by_own.items():
        for place, (reward, _) in zip(places, _weighed(stored, configs[key], places), strict=True):
            each = stored.trajectories[place]
            if reward != each.reward:
                different.append((each.pk, each.reward, reward))
    num = sum(map(len, by_own.values()))
    return Parity(num, num - len(different), len(stored.trajectories) - num, different[:10])
