"""What the env worker calls: prepare the desktop before the first turn, score it after the last.

setup(task, desktop) -> turns -> evaluate(task, desktop, last_action)

Scores as OSWorld's: getters read the desktop, metrics compare. A missing file is a wrong answer (score 0);
a desktop that does not answer is an EvaluatorError.
"""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from training.contracts.metric_finding import MetricFinding
from training.contracts.milestone import Milestone
from training.contracts.task import INFEASIBLE, as_list, column
from training.contracts.types import Action, ActionKind, Task
from training.tasks.supported_by.deskhand import unsupported_reason
from training.tasks.supported_by.desktop_programs import WITH_OFFICE
from workers.desktops.agent_contract import Agent
from workers.desktops.contract import EnvError, ErrorKind
from workers.tasks.errors import EvaluatorError, SetupError, TaskErrorKind
from workers.tasks.evaluators.getters import read
from workers.tasks.evaluators.metrics import METRICS
from workers.tasks.setup_verbs import run_steps
from workers.tasks.task_desktop_contract import TaskDesktop

POLL_S = 0.02
MAX_SHOWN = 400
"""Characters of what a check expected or got."""


class Judgement(NamedTuple):
    score: float
    """In [0, 1]."""
    checks: tuple[MetricFinding, ...]
    """One per func, as it was at the last look."""


class Look(NamedTuple):
    """One func at one moment."""

    metric: str
    value: float
    result: dict[str, Any]
    """Its getter."""
    got: Any
    expected: Any


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
        return [one.name for one in milestones if judge_by(one.evaluator, desktop).score >= 1]
    except EnvError as error:
        if error.kind is ErrorKind.INFRA:
            raise
        raise EvaluatorError(TaskErrorKind.DESKTOP, f"milestones: {error}") from error


def judge(task: Task, desktop: TaskDesktop, last_action: Action | None) -> Judgement:
    """The same with every check of the evaluator."""
    try:
        desktop.agent.begin_evaluation()
        run_steps(task.evaluator.get("postconfig", []), desktop)
        return judge_by(task.evaluator, desktop, last_action)
    except SetupError as error:
        raise EvaluatorError(error.kind, f"{task.task_id}: postconfig: {error}") from error
    except EnvError as error:
        if error.kind is ErrorKind.INFRA:
            raise
        raise EvaluatorError(TaskErrorKind.DESKTOP, f"{task.task_id}: {error}") from error


def judge_by(evaluator: dict[str, Any], desktop: TaskDesktop, last_action: Action | None = None) -> Judgement:
    """Asks again until the score is 1 or the evaluator's `wait_s` is over.

    Raises EvaluatorError; errors of the desktop itself pass through.
    """
    functions = as_list(evaluator.get("func"))
    has_given_up = last_action is not None and (
        last_action.kind is ActionKind.TERMINATE and last_action.status == "failure"
    )
    if functions == [INFEASIBLE] or has_given_up:
        # As in OSWorld: giving up on a feasible task is a failure.
        score = float(has_given_up and functions == [INFEASIBLE])
        said = "that it cannot be done" if has_given_up else "that it is done"
        expected = "that it cannot be done" if functions == [INFEASIBLE] else "that it is done"
        return Judgement(
            score, (MetricFinding(metric="claim of the agent", value=score, expected=expected, got=said),)
        )
    deadline = time.monotonic() + float(evaluator.get("wait_s", 0.0))
    looks = _look(evaluator, functions, desktop)
    while (score := _score(evaluator, looks)) < 1.0 and time.monotonic() < deadline:
        time.sleep(POLL_S)
        looks = _look(evaluator, functions, desktop)
    return Judgement(score, tuple(map(_check, looks)))


def _score(evaluator: dict[str, Any], looks: list[Look]) -> float:
    """Mean of the metrics, under "and" 0 when one is 0; the best one under "or"."""
    scores = [look.value for look in looks]
    conj = evaluator.get("conj", "and")
    if conj == "or":
        return max(scores)
    return 0.0 if conj == "and" and 0.0 in scores else sum(scores) / len(scores)


def _check(look: Look) -> MetricFinding:
    kind = str(look.result.get("type"))
    parameters = {key: value for key, value in look.result.items() if key != "type"}
    return MetricFinding(
        metric=look.metric,
        value=look.value,
        expected=_shown(look.expected),
        got=_shown(look.got),
        source=f"{kind} {_shown(parameters)}" if parameters else kind,
    )


def _shown(value: Any) -> str:
    """A value of task or desktop as text for people."""
    if value is None:
        return "nothing"
    if isinstance(value, bytes):
        text = value[: 4 * MAX_SHOWN].decode(errors="replace")
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _look(evaluator: dict[str, Any], functions: list[str], desktop: TaskDesktop) -> list[Look]:
    """Every func once. What several of them ask for is read once: programs go on, and must not show each
    another content."""
    answers: dict[str, Any] = {}

    def read_once(getter: dict[str, Any]) -> Any:
        key = json.dumps(getter, sort_keys=True)
        if key not in answers:
            answers[key] = read(getter, desktop)
        return answers[key]

    columns = [column(evaluator, key, len(functions)) for key in ("result", "expected", "options")]
    if not functions or any(len(entries) != len(functions) for entries in columns):
        raise EvaluatorError(TaskErrorKind.TASK, "result, expected and options need one entry per func")
    parts = zip(functions, *columns, strict=True)
    return [_metric(name, result, expected, options, read_once) for name, result, expected, options in parts]


def _metric(
    name: str,
    result: dict[str, Any],
    expected: dict[str, Any],
    options: dict[str, Any] | None,
    read_getter: Callable[[dict[str, Any]], Any],
) -> Look:
    function = METRICS.get(name)
    if function is None:
        raise EvaluatorError(TaskErrorKind.UNSUPPORTED, f"metric {name} is not supported")
    if not isinstance(result, dict) or not isinstance(expected, dict):
        raise EvaluatorError(TaskErrorKind.TASK, f"metric {name} needs a result and an expected getter")
    try:
        got, wanted = read_getter(result), read_getter(expected)
        return Look(name, function(got, wanted, options or {}), result, got, wanted)
    except (ValueError, KeyError, TypeError) as error:
        raise EvaluatorError(TaskErrorKind.TASK, f"metric {name}: {error}") from error
