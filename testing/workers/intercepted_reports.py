"""Reports of this process of which some requests are answered by a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from workers.reports.current import use_reports
from workers.reports.local import LocalReports


class _Intercepted(LocalReports):
    def __init__(self, answers: dict[str, Callable[..., Any]]) -> None:
        self._answers = answers

    def request(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        answer = self._answers.get(function.__name__)
        return answer(*args, **kwargs) if answer else super().request(function, *args, **kwargs)


@contextmanager
def intercepted(**answers: Callable[..., Any]) -> Iterator[None]:
    """Inside the block the requests of these names are answered by these functions."""
    before = use_reports(_Intercepted(answers))
    try:
        yield
    finally:
        use_reports(before)
