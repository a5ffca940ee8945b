"""Completion text -> typed action, by a whitelist. Nothing a model writes is ever evaluated.

One dialect per module; each offers `start(text)` (where its action begins, None when the text is not
in that dialect) and `parse(text, points)`, which raises `ActionTextError` when nothing can be done.
"""

from training.actions.parse.dialects import parse_completion

__all__ = ["parse_completion"]
