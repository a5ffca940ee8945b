"""OSWorld's evaluators: getters read the desktop, metrics compare, `evaluate` combines.

A missing file is a wrong answer (score 0). A desktop that does not answer is an EvaluatorError.
"""

from workers.tasks.evaluators.evaluate import Judgement, evaluate, judge

__all__ = ["Judgement", "evaluate", "judge"]
