"""Value by turn of a group's members, from the states that they shared and from branches."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from training.contracts.screen_state import Move, move_of, state_of_digests, states_by_history
from training.contracts.types import Purpose, Source
from training.statistics.turn_values import NodeValue, TurnValue, interval_of_change, turn_values
from webapp.trajectories.models import Group, Trajectory

LEAST_VISITS = 2
"""Members from which on a state has a value of its own, without an experiment that says so."""
DECISIVE = 0.3
"""Of the range of rewards that one turn must lose to be called a mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Turns that share a change of value; most are one turn."""

    first: int
    last: int
    """Indexes of turns."""
    change: float
    low: float
    high: float
    """95 % interval."""
    num_before: int
    num_after: int
    """Members that were in the states on its two sides."""
    is_mistake: bool = False
    """The first that lost decisively."""

    @property
    def turns(self) -> str:
        """ "Turn 7" or "Turns 3–5", as people count them."""
        one = self.first + 1
        return f"Turn {one}" if self.first == self.last else f"Turns {one}–{self.last + 1}"

    @property
    def words(self) -> str:
        """ "Turn 7 lost 0.60 [0.40, 0.80]"; bounds count in the direction of the change."""
        if not self.change:
            return f"{self.turns} changed nothing [{self.low:.2f}, {self.high:.2f}]"
        is_loss = self.change < 0
        low, high = (-self.high, -self.low) if is_loss else (self.low, self.high)
        return f"{self.turns} {'lost' if is_loss else 'won'} {abs(self.change):.2f} [{low:.2f}, {high:.2f}]"


def credit_of(group: Group) -> dict[int, list[Stretch]]:
    """Trajectory id -> its stretches; empty with fewer than two scored members. Two queries."""
    shows_screen = True
    least = LEAST_VISITS
    if group.experiment is not None:
        settings = group.experiment.settings
        shows_screen, least = settings.prompt.shows_screen, settings.algorithm.least_visits
    seen: defaultdict[int, list[str]] = defaultdict(list)
    moves: defaultdict[int, list[Move]] = defaultdict(list)
    rewards: dict[int, float] = {}
    rows = Trajectory.objects.filter(group=group, reward__isnull=False)
    if group.source != Source.HUMAN:
        rows = rows.exclude(source=Source.HUMAN)
    columns = ("index", "frame", "accessibility", "terminal", "earlier_actions", "action", "measured")
    rows = rows.order_by("id", "turns__index")
    found = rows.values_list("id", "reward", *(f"turns__{name}" for name in columns))
    for key, reward, index, frame, tree, terminal, earlier, action, measured in found:
        rewards[key], row = reward, seen[key]
        if index is not None:  # of a member that had no time for a turn there is none
            row.append(state_of_digests(frame, tree or "", terminal or "", shows_screen=shows_screen))
            actions = [*(earlier or []), action] if action else []
            moves[key].append(move_of(actions, (measured or {}).get("widgets", "")))
    if len(rewards) < 2:
        return {}
    values = turn_values(rewards, states_by_history(seen, moves), least, measured_turns(rewards))
    low, high = min(0.0, *rewards.values()), max(1.0, *rewards.values())
    return {key: _stretches(row, low, high) for key, row in values.items()}


def measured_turns(trajectory_ids: Iterable[int]) -> dict[int, dict[int, NodeValue]]:
    """Trajectory id -> turn -> value before it, by the policy's continuations from there. One query."""
    rewards: defaultdict[int, defaultdict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    rows = Trajectory.objects.filter(group__parent__in=list(trajectory_ids), purpose=Purpose.BRANCH)
    rows = rows.filter(source=Source.POLICY, reward__isnull=False).order_by()
    for parent, turn, reward in rows.values_list("group__parent", "group__branch_turn", "reward"):
        if turn is not None and reward is not None:
            rewards[parent][turn].append(reward)
    return {
        parent: {turn: NodeValue(fmean(found), len(found)) for turn, found in by_turn.items()}
        for parent, by_turn in rewards.items()
    }


def _stretches(turns: Sequence[TurnValue], lowest: float, highest: float) -> list[Stretch]:
    """A mistake is named only where a shared state says which turn it was, and chance does not explain it."""
    found: list[Stretch] = []
    has_mistake = False
    for turn in {one.first: one for one in turns}.values():
        low, high = interval_of_change(turn, lowest, highest)
        is_whole = turn.first == 0 and turn.last == len(turns) - 1 and len(turns) > 1
        is_loss = turn.change <= -DECISIVE * (highest - lowest) and high < 0
        is_mistake = is_loss and not is_whole and not has_mistake
        has_mistake = has_mistake or is_mistake
        stretch = Stretch(
            first=turn.first,
            last=turn.last,
            change=turn.change,
            low=low,
            high=high,
            num_before=turn.before.num,
            num_after=turn.after.num,
            is_mistake=is_mistake,
        )
        found.append(stretch)
    return found


def mistake_of(stretches: Sequence[Stretch]) -> int | None:
    """Index of the first turn that lost decisively."""
    return next((one.first for one in stretches if one.is_mistake), None)
