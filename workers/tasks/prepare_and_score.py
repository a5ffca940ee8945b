"""What the env worker calls: prepare the desktop before the first turn, score it after the last.

setup(task, desktop) -> turns -> evaluate(task, desktop, last_action)
"""

from collections.abc import Sequence

from training.contracts.milestone import Milestone
from training.contracts.types import Action, Task
from training.tasks.supported_by.deskhand import unsupported_reason
from training.tasks.supported_by.desktop_programs import WITH_OFFICE
from workers.desktops.agent_contract import Agent
from workers.desktops.contract import EnvError, ErrorKind
from workers.tasks import evaluators
from workers.tasks.errors import EvaluatorError, SetupError, TaskErrorKind
from workers.tasks.evaluators import Judgement
from workers.tasks.setup_verbs import run_steps
from workers.tasks.task_desktop_contract import TaskDesktop


def setup(task: Task, desktop: TaskDesktop) -> None:
    """Prepare a clean desktop. Raises SetupError; an EnvError of kind infra passes through."""
    # Whether this very desktop has them, launching says.
    if reason := unsupported_reason(task, WITH_OFFICE):
        raise SetupError(TaskErrorKind.UNSUPPORTED, f"{task.task_id}: {reason}")
    try:
        use_place(task, desktop.agent)
        run_steps(task.config, desktop)
    except EnvError as error:
        if error.kind is ErrorKind.INFRA:
            raise
        raise SetupError(TaskErrorKind.DESKTOP, f"{task.task_id}: {error}") from error


def use_place(task: Task, agent: Agent) -> None:
    """Give a clean desktop the time zone and locale that the task names. Raises SetupError."""
    if not task.timezone and not task.locale:
        return
    try:
        agent.use_place(task.timezone, task.locale)
    except EnvError as error:
        if error.kind is not ErrorKind.TASK:
            raise
        raise SetupError(TaskErrorKind.UNSUPPORTED, f"{task.task_id}: {error}") from error


def evaluate(task: Task, desktop: TaskDesktop, last_action: Action | None) -> float:
    """Score in [0, 1]. Raises EvaluatorError; an EnvError of kind infra passes through."""
    return judge(task, desktop, last_action).score


def reached(milestones: Sequence[Milestone], desktop: TaskDesktop) -> list[str]:
    """Names of those that hold now. Nothing is run for them, so that the agent's work is left as it is.

    Raises EvaluatorError where one cannot be read: a file that is half written, say.
    """
    try:
        return [one.name for one in milestones if evaluators.evaluate(one.evaluator, desktop, None) >= 1]
    except EnvError as error:
        if error.kind is ErrorKind.INFRA:
            raise
        raise EvaluatorError(TaskErrorKind.DESKTOP, f"milestones: {error}") from error


def judge(task: Task, desktop: TaskDesktop, last_action: Action | None) -> Judgement:
    """The same with every check of the evaluator."""
    try:
        desktop.agent.begin_evaluation()
        run_steps(task.evaluator.get("postconfig", []), desktop)
        return evaluators.judge(task.evaluator, desktop, last_action)
    except SetupError as error:
        raise EvaluatorError(error.kind, f"{task.task_id}: postconfig: {error}") from error
    except EnvError as error:
        if error.kind is ErrorKind.INFRA:
            raise
        raise EvaluatorError(TaskErrorKind.DESKTOP, f"{task.task_id}: {error}") from error
