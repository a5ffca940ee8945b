"""What an evaluator says of one thing that it looked at."""

from training.contracts.types import Wire


class MetricFinding(Wire):
    """One metric of an evaluator at the end of an episode, for people: training never reads it."""

    metric: str
    value: float
    """In [0, 1]; the evaluator's `conj` makes the score of all of them."""
    expected: str
    """As text, cut."""
    got: str
    """What the desktop held, as text, cut."""
    source: str = ""
    """Where that came from: the getter with its parameters."""
