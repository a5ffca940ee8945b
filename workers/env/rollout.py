"""One rollout: observation -> decision -> action -> observation, until it ends; then one evaluation.

    setup | wake -> [open turn -> decide -> act -> close turn]* -> evaluate -> reward
Every turn is recorded when its screenshot is taken and again when its action was done, so that
people watch it happen.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from training.contracts.context_fingerprint import shared_fingerprint
from training.contracts.turn_trace import TurnPart
from training.contracts.types import Action, ActionKind, Limit, Observation, Source, TrajectoryStatus, Turn
from training.rewards import Reward, compute_reward
from webapp.lib.outage_retries import working_time
from webapp.worker_door import trajectories as calls
from webapp.worker_door.assignments import Assignment
from workers import identity
from workers.desktops.frame import Frame
from workers.desktops.late_repaints import Unsettled
from workers.env.actors import Actor, Decision
from workers.env.measured_turn import measured_turn
from workers.env.policy_client import ContextFull
from workers.env.redone_turns import redo
from workers.env.takeover.takeovers import Takeover, Takeovers
from workers.env.turn_reports import begin_turn
from workers.env.turn_snapshots import TurnSnapshots, wake_from
from workers.env.turn_trace import TurnTrace
from workers.environments.agent_hands import AgentHands, Done
from workers.environments.contract import Explaining, Noticing
from workers.environments.milestone_watch import MilestoneWatch
from workers.environments.registry import Environment
from workers.reports.current import reports
from workers.tasks.errors import EvaluatorError, TaskErrorKind


class TrajectoryEnded(Exception):
    """Raised when the trajectory was ended from outside while it ran."""


@dataclass(slots=True)
class Ending:
    status: TrajectoryStatus
    last_action: Action | None
    limit: Limit | None = None
    """Of a truncated one."""


class Rollout:
    """Runs one claimed trajectory in an environment."""

    def __init__(self, assignment: Assignment, environment: Environment, actor: Actor) -> None:
        self._assignment = assignment
        self._row = assignment.row
        self._task = assignment.task
        self._environment = environment
        self._actor = actor
        self._turns: list[Turn] = []
        self._hands = AgentHands(environment)
        before = assignment.branch.milestones if assignment.branch else ()
        self._milestones = MilestoneWatch(assignment.task, environment, before)

    def run(self) -> None:
        """All of it. Raises what went wrong: the caller decides what that means."""
        self._begin()
        desktop_id, provider = self._environment.desktop_id, self._environment.provider
        here = identity.current().host
        reports().report(calls.begin_running, self._row.pk, desktop_id, here, provider, self._task.screen)
        self._require_wanted()
        ending = self._take_turns()
        self._hands.let_go()
        if isinstance(self._environment, Noticing):
            self._environment.wait_for_late()
        final = self._environment.observe()
        reports().report_with_screen(
            self._row.team_id, final, calls.record_final_screen, self._row.pk, final.sha256
        )
        reports().report(calls.begin_evaluating, self._row.pk)
        self._require_wanted()
        score = self._environment.evaluate(self._task, ending.last_action)
        if not 0.0 <= score <= 1.0:
            raise EvaluatorError(TaskErrorKind.TASK, f"the score is {score}, and not from 0 to 1")
        self._look_for_milestones(is_last=True)
        result = compute_reward(
            self._turns,
            score,
            self._assignment.config.rewards,
            max_turns=self._max_turns(),
            milestones=self._milestones.reached,
            num_milestones=len(self._task.milestones),
        )
        if isinstance(self._environment, Explaining) and self._environment.checks:
            reports().report(calls.record_checks, self._row.pk, list(self._environment.checks))
        self._finish(ending, score, result)

    def _finish(self, ending: Ending, score: float, result: Reward) -> None:
        """Report score, reward and what made the tokens; a success is offered to the replay inbox."""
        reports().report(
            calls.finish,
            self._row.pk,
            ending.status,
            score,
            result.reward,
            list(result.terms),
            {index: list(terms) for index, terms in enumerate(result.turn_terms) if terms},
            shared_fingerprint(self._turns),
            ending.limit,
        )

    def _look_for_milestones(self, *, is_last: bool = False) -> None:
        """Behind the newest turn."""
        if self._milestones.look(len(self._turns) - 1, is_last=is_last):
            reports().report(calls.record_milestones, self._row.pk, list(self._milestones.reached))

    def _begin(self) -> None:
        """Bring the desktop to the first turn: the task's set-up, or where the parent of a branch was."""
        branch = self._assignment.branch
        if branch is None:
            self._environment.prepare(self._task)
            return
        if branch.is_redone:
            self._environment.prepare(self._task)
            redo(self._environment, self._hands, branch)
        else:
            wake_from(self._environment, branch.snapshot)
            self._hands.note(action for turn in branch.turns for action in turn.actions)
        self._turns.extend(branch.turns)
        self._actor.resume(branch.turns)

    def _max_turns(self) -> int:
        return self._task.max_turns or self._assignment.config.desktops.max_turns

    def _has_ended(self) -> bool:
        return reports().trajectory_now(self._row.pk).has_ended

    def _require_wanted(self) -> None:
        """Raise TrajectoryEnded when it was ended from outside while it ran."""
        if self._has_ended():
            raise TrajectoryEnded

    def _taken_over(self, takeovers: Takeovers) -> Takeover | None:
        """What a person did before the agent's next turn, if one wanted to. Raises TrajectoryEnded."""
        now = reports().trajectory_now(self._row.pk)
        if now.has_ended:
            raise TrajectoryEnded
        if not takeovers.may_begin(now):
            return None
        self._hands.let_go()
        return takeovers.wait(self._has_ended)

    def _take_turns(self) -> Ending:
        deadline = working_time() + self._assignment.config.desktops.trajectory_timeout_s
        trace = TurnTrace()
        frame = self._environment.observe()
        reports().show_screen(self._row.pk, len(self._turns), frame)
        trace.lap(TurnPart.SCREENSHOT)
        branch = self._assignment.branch
        text = branch.text if branch else self._task.instruction
        action = next((turn.action for turn in reversed(self._turns) if turn.action), None)
        takeovers = Takeovers(self._assignment, self._environment, self._turns, self._look_for_milestones)
        snapshots = TurnSnapshots(self._assignment, self._environment)
        num_decided = sum(turn.source is not Source.HUMAN for turn in self._turns)
        while num_decided < self._max_turns():
            if takeover := self._taken_over(takeovers):
                action = takeover.last_action or action
                if takeover.is_finished:
                    return Ending(TrajectoryStatus.TERMINATED, action)
                deadline += takeover.duration_s
                frame, text = self._environment.observe(), takeover.text_for_agent(text, num_decided)
                reports().show_screen(self._row.pk, len(self._turns), frame)
                trace.skip()
                continue
            index, num_decided = len(self._turns), num_decided + 1
            frame = self._second_look(frame, index)
            observation, png = begin_turn(self._assignment, index, frame, text)
            trace.lap(TurnPart.REPORT)
            took_s = snapshots.take(index)
            deadline += took_s
            trace.lap(TurnPart.SNAPSHOT if took_s else TurnPart.REPORT)
            try:
                decision = self._actor.decide(index, png, observation, self._turns)
            except ContextFull:
                # The screenshot stays on record; without a completion it is no turn of a sample.
                return Ending(TrajectoryStatus.TRUNCATED, action, Limit.TOKENS)
            deadline += decision.completion.waited_s if decision.completion else 0.0
            trace.lap(TurnPart.TRANSFER, inside=decision.spent_ms)
            completed_at = datetime.now(UTC)
            unsettled = Unsettled.LATER if self._has_changed() else frame.unsettled
            done = self._hands.do(decision.actions, (frame.width, frame.height))
            action = done.last
            if action is not None and action.kind is ActionKind.TERMINATE:
                seen = (frame, self._environment.observe())
                self._close(index, unsettled, observation, decision, done, seen, completed_at, trace)
                return Ending(TrajectoryStatus.TERMINATED, action)
            trace.lap(TurnPart.ACT)
            after = self._environment.observe()
            is_late = working_time() > deadline
            if num_decided < self._max_turns() and not is_late:
                reports().show_screen(self._row.pk, index + 1, after)
            trace.lap(TurnPart.SCREENSHOT)
            self._close(index, unsettled, observation, decision, done, (frame, after), completed_at, trace)
            self._look_for_milestones()
            text = result_text(decision, done.error)
            frame = after
            if is_late:
                return Ending(TrajectoryStatus.TRUNCATED, action, Limit.TIME)
        return Ending(
            TrajectoryStatus.TRUNCATED, action, Limit.TASK_TURNS if self._task.max_turns else Limit.TURNS
        )

    def _second_look(self, frame: Frame, index: int) -> Frame:
        """Another picture where the screen changed while the last turn was recorded."""
        if not self._has_changed():
            return frame
        frame = self._environment.observe()
        reports().show_screen(self._row.pk, index, frame)
        return frame

    def _has_changed(self) -> bool:
        """Whether the screen is another one than in the last picture, as far as that is noticed."""
        return isinstance(self._environment, Noticing) and self._environment.has_changed()

    def _close(
        self,
        index: int,
        unsettled: str | None,
        observation: Observation,
        decision: Decision,
        done: Done,
        screens: tuple[Frame, Frame],
        completed_at: datetime,
        trace: TurnTrace,
    ) -> None:
        """Record what became of a turn; `screens` are those before and after its actions."""
        action, (before, after) = done.last, screens
        is_end = action is not None and action.kind is ActionKind.TERMINATE
        turn = Turn(
            index=index,
            source=self._assignment.source,
            observation=observation,
            completion=decision.completion,
            action=action,
            earlier_actions=done.tried[:-1],
            parse_error=decision.parse_error,
            dialect=decision.dialect,
            action_error=done.error,
            screen_changed=None if is_end else after.raw_digest != before.raw_digest,
            measured=measured_turn(action, before, after),
            unsettled=unsettled or "",
        )
        self._turns.append(turn)
        reports().report(calls.close_turn, self._row.pk, turn, decision.thought, completed_at, trace.take())


def result_text(decision: Decision, action_error: str | None) -> str:
    """What the next observation says about the last action."""
    if decision.parse_error:
        return "The last answer held no action."
    if action_error:
        return f"The last action failed: {action_error}."
    return ""
