"""Requests groups from the coordinator and waits for them. Rank 0 only.

REQUESTED -> finished (>= 2 valid members, or 1 for an evaluation) -> returned
          -> finished with too few -> asked for again, at most `MAX_REQUESTS` times -> returned as it is
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from training.contracts.coordinator import SampleGroup
from training.contracts.types import Control, Group, Purpose, Source, Task
from training.distributed.interrupts import Interrupted, TermSignal
from training.rollouts.coordinator_client import CoordinatorClient

POLL_S = 2.0
"""Length of one long poll: how late a pause is noticed while waiting."""
MAX_REQUESTS = 3
"""Requests for one place in a step before it is taken as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """What is asked for each task."""

    size: int
    purpose: Purpose
    step: int
    temperature: float
    policy_version: int
    source: Source = Source.POLICY
    parent_id: int | None = None
    """Of a branch, the trajectory that is continued from its turn `branch_turn`."""
    branch_turn: int = 0

    @property
    def min_valid(self) -> int:
        """Scored members below which a group is asked for again."""
        return {Purpose.TRAIN: 2, Purpose.BRANCH: 0}.get(self.purpose, 1)


@dataclass(slots=True, kw_only=True)
class PendingGroups:
    """Groups that were asked for together; one place per task."""

    tasks: list[Task]
    request: GroupSpec
    num_requests: list[int] = field(default_factory=list)
    """Per place."""
    finished: dict[int, Group] = field(default_factory=dict)
    """Place -> group."""

    @property
    def is_finished(self) -> bool:
        return len(self.finished) == len(self.tasks)

    @property
    def num_asked(self) -> int:
        return self.request.size * len(self.tasks)

    @property
    def num_done(self) -> int:
        """Trajectories of its finished groups."""
        return self.request.size * len(self.finished)


Progress = Callable[[int, int], None]
"""(finished, requested) trajectories"""


class WeightsLost(Exception):
    """Raised while waiting when the engine was started again and needs the trainer's weights to go on."""


class GroupCollector:
    """Collects finished groups through the coordinator; several tickets may be open at once."""

    def __init__(self, coordinator: CoordinatorClient, term: TermSignal) -> None:
        self.coordinator = coordinator
        self.term = term
        self.cursor = 0
        self.open: dict[int, tuple[PendingGroups, int]] = {}
        """group_id -> the place that it is for."""

    def check_control(self) -> None:
        """Raise Interrupted when the supervisor or SIGTERM wants us to stop; running groups are cancelled."""
        command = Control.PAUSE if self.term.was_received else self.coordinator.control()
        if command is Control.RUN:
            return
        for group_id in self.open:
            self.coordinator.cancel_group(group_id)
        self.open.clear()
        raise Interrupted(command)

    def ask(self, tasks: Sequence[Task], request: GroupSpec) -> PendingGroups:
        """Request one group per task; returns at once."""
        ticket = PendingGroups(tasks=list(tasks), request=request, num_requests=[0] * len(tasks))
        for place in range(len(tasks)):
            self._request(ticket, place)
        return ticket

    def cancel(self, ticket: PendingGroups) -> None:
        """Give up on a ticket's groups that are not finished."""
        mine = [group_id for group_id, (owner, _) in self.open.items() if owner is ticket]
        for group_id in mine:
            self.coordinator.cancel_group(group_id)
            del self.open[group_id]

    def wait(self, ticket: PendingGroups, progress: Progress | None = None) -> list[Group]:
        """The ticket's groups in the order of its tasks, useless ones included as they are.

        Raises Interrupted, and WeightsLost (ask again after a weight sync; nothing is lost).
        """
        while True:
            self.check_control()
            if ticket.is_finished:
                return [ticket.finished[place] for place in range(len(ticket.tasks))]
            if self.coordinator.engine_needs_weights:
                raise WeightsLost
            answer = self.coordinator.finished_groups(self.cursor, POLL_S)
            self.cursor = answer.cursor
            for group in answer.groups:
                self._take(group)
            if progress is not None and answer.groups:
                progress(ticket.num_done, ticket.num_asked)

    def wait_for_all(self, tickets: Sequence[PendingGroups], progress: Progress) -> list[list[Group]]:
        """The groups of several tickets, which are sampled side by side. Raises as `wait` does."""

        def tell(*_: int) -> None:
            progress(sum(one.num_done for one in tickets), sum(one.num_asked for one in tickets))

        return [self.wait(ticket, tell) for ticket in tickets]

    def _take(self, group: Group) -> None:
        if group.group_id not in self.open:
            return  # of an interrupted request; its experiment went on without it
        ticket, place = self.open.pop(group.group_id)
        is_useless = len(group.scored()) < ticket.request.min_valid
        if is_useless and ticket.num_requests[place] < MAX_REQUESTS:
            self._request(ticket, place)
        else:
            ticket.finished[place] = group

    def _request(self, ticket: PendingGroups, place: int) -> None:
        ticket.num_requests[place] += 1
        group_id = self.coordinator.request_group(
            SampleGroup(task_id=ticket.tasks[place].task_id, **asdict(ticket.request))
        )
        self.open[group_id] = (ticket, place)
