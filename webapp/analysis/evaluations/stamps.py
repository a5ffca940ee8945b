"""What differs between what measured numbers that a page puts side by side."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from training.contracts.eye_test import stamp_differences
from webapp.experiments.models import Evaluation

MOST_NAMED = 6


def measured_otherwise(evaluations: Iterable[Evaluation]) -> list[str]:
    """Of the first and the others, a sentence per difference; empty where all were measured alike."""
    found = list(evaluations)
    counts = Counter(one.experiment_id for one in found)
    unlike: defaultdict[str, list[str]] = defaultdict(list)
    for other in found[1:]:
        if differences := stamp_differences(found[0].eye_test, other.eye_test):
            unlike[", ".join(differences)].append(_name(other, counts))
    return [
        f"{_name(found[0], counts)} and {_listed(names)} were measured otherwise: {words}."
        for words, names in unlike.items()
    ]


def _name(evaluation: Evaluation, counts: Counter[int]) -> str:
    """Its experiment's, and its own where there are several of that."""
    own = f" {evaluation.name} ({evaluation.kind})" if counts[evaluation.experiment_id] > 1 else ""
    return f"#{evaluation.experiment_id}{own}"


def _listed(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
