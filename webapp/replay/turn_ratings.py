"""What ratings of single turns add up to.

A turn is bad when more labels of the trajectory are against it than for it; a first wrong turn is against.
"""

from collections import Counter
from collections.abc import Iterable

from webapp.replay.models import ProcessLabel

GOOD, BAD = 1, -1
RATINGS = (GOOD, BAD)


def balance_of(labels: Iterable[ProcessLabel]) -> Counter[int]:
    """Index of a turn -> labels for it minus those against it; turns that were not rated are left out."""
    balance: Counter[int] = Counter()
    for label in labels:
        balance.update({int(index): value for index, value in label.ratings.items()})
        if label.first_wrong is not None and str(label.first_wrong) not in label.ratings:
            balance[label.first_wrong] += BAD
    return balance


def bad_turns(labels: Iterable[ProcessLabel]) -> list[int]:
    """Indexes of the turns that are not imitated."""
    return sorted(index for index, value in balance_of(labels).items() if value < 0)
