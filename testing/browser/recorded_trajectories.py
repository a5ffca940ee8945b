"""Trajectories recorded turn by turn through the real services, on screens that look like First desk."""

from dataclasses import dataclass, field

from django.utils import timezone

from testing import first_desk_screens
from testing.factories import make_trajectory
from training.contracts.turn_trace import TurnPart
from training.contracts.types import Action, Completion, Observation, Source, TrajectoryStatus, Turn
from webapp.accounts.models import Team
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.services import trajectories, turns
from webapp.trajectories.services.frames import store_frame


def store(team: Team, png: bytes) -> str:
    """Keep a drawn screen as a frame of `team`."""
    return store_frame(team, png)


@dataclass
class Recorder:
    """A running trajectory that gets one menu screen and one key per turn."""

    group: Group
    member: int = 0
    trajectory: Trajectory = field(init=False)
    num_turns: int = 0

    def __post_init__(self) -> None:
        self.trajectory = make_trajectory(
            group=self.group, member=self.member, turns=0, status="running", reward=None
        )

    def open_turn(self) -> Observation:
        """Take the next screenshot; the policy is deciding."""
        sha = store(
            self.group.team, first_desk_screens.menu_screen(self.num_turns % len(first_desk_screens.MENU))
        )
        seen = Observation(sha256=sha, width=512, height=384)
        turns.open_turn(
            trajectory_id=self.trajectory.pk,
            index=self.num_turns,
            source=Source.POLICY,
            observation=seen,
            observed_at=timezone.now(),
        )
        self.num_turns += 1
        return seen

    def close_turn(
        self, seen: Observation, spent_ms: dict[TurnPart, float] | None = None, **values: object
    ) -> None:
        """The completion came and its action was done; a press of Down when nothing else is said."""
        if not {"action", "parse_error"} & set(values):
            values["action"] = Action(kind="key", keys=("Down",))
        turn = Turn(
            index=self.num_turns - 1,
            observation=seen,
            completion=Completion(
                text=f"completion {self.num_turns}", token_ids=(1,), behaviour_logprobs=(-0.1,)
            ),
            **values,
        )
        turns.close_turn(
            trajectory_id=self.trajectory.pk,
            turn=turn,
            thought=f"thought of turn {self.num_turns}",
            completed_at=timezone.now(),
            spent_ms=spent_ms,
        )

    def turn(self, **values: object) -> None:
        """One whole turn."""
        self.close_turn(self.open_turn(), **values)

    def end(self, score: float = 1.0) -> None:
        """Scored by the evaluator."""
        term = {"name": "task_score.v1", "value": score, "weight": 1.0, "contribution": score, "note": ""}
        trajectories.move_trajectory(trajectory=self.trajectory, to=TrajectoryStatus.EVALUATING)
        trajectories.end_trajectory(
            trajectory_id=self.trajectory.pk,
            status=TrajectoryStatus.TERMINATED,
            score=score,
            reward=score,
            terms=[term],
        )
