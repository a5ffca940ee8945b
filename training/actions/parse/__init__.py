"""Completion text -> typed action, by a whitelist. Nothing a model writes is ever evaluated.

One dialect per module; each offers `start(text)` (where its action begins, None when the text is not
in that dialect) and `parse(text, points)`, which raises `ActionTextError` when nothing can be done.
"""

from training.actions.parse.dialects import off_screen_error, parse_completion

__all__ = ["off_screen_error", "parse_completion"]
