"""One evaluator, with its parts, its patience, and the rule for infeasible tasks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from training.contracts.types import Action, ActionKind
from training.tasks.supported_by.deskhand import INFEASIBLE, as_list, column
from workers.tasks.errors import EvaluatorError, TaskErrorKind
from workers.tasks.evaluators.getters import read
from workers.tasks.evaluators.metrics import METRICS
from workers.tasks.task_desktop_contract import TaskDesktop

POLL_S = 0.02


def evaluate(evaluator: dict[str, Any], desktop: TaskDesktop, last_action: Action | None) -> float:
    """Score in [0, 1]; asks again until it is 1 or the evaluator's `wait_s` is over.

    Raises EvaluatorError; errors of the desktop itself pass through.
    """
    functions = as_list(evaluator.get("func"))
    has_given_up = last_action is not None and (
        last_action.kind is ActionKind.TERMINATE and last_action.status == "failure"
    )
    if functions == [INFEASIBLE]:
        return float(has_given_up)
    if has_given_up:
        return 0.0  # as in OSWorld: giving up on a feasible task is a failure
    deadline = time.monotonic() + float(evaluator.get("wait_s", 0.0))
    score = _score(evaluator, functions, desktop)
    while score < 1.0 and time.monotonic() < deadline:
        time.sleep(POLL_S)
        score = _score(evaluator, functions, desktop)
    return score


def _score(evaluator: dict[str, Any], functions: list[str], desktop: TaskDesktop) -> float:
    """Mean of the metrics, under "and" 0 when one is 0; the best one under "or".

    What several of them ask for is read once: programs go on, and must not show each another content.
    """
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
    scores = [
        _metric(name, result, expected, options, read_once) for name, result, expected, options in parts
    ]
    conj = evaluator.get("conj", "and")
    if conj == "or":
        return max(scores)
    return 0.0 if conj == "and" and 0.0 in scores else sum(scores) / len(scores)


def _metric(
    name: str,
    result: dict[str, Any],
    expected: dict[str, Any],
    options: dict[str, Any] | None,
    read_getter: Callable[[dict[str, Any]], Any],
) -> float:
    function = METRICS.get(name)
    if function is None:
        raise EvaluatorError(TaskErrorKind.UNSUPPORTED, f"metric {name} is not supported")
    if not isinstance(result, dict) or not isinstance(expected, dict):
        raise EvaluatorError(TaskErrorKind.TASK, f"metric {name} needs a result and an expected getter")
    try:
        return function(read_getter(result), read_getter(expected), options or {})
    except (ValueError, KeyError, TypeError) as error:
        raise EvaluatorError(TaskErrorKind.TASK, f"metric {name}: {error}") from error
