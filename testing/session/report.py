"""What a long run says besides pytest's own lines: failures as they happen, and where the time went.

With `--durations=N` the N slowest files are listed as well.
"""

import os
from collections import Counter

import pytest

FAILURES = int(os.environ.get("DESKHAND_FAILURES_FD", "0"))
"""An open file where each failure is named at once: for a run whose output is shown later."""
IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ

seconds: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    seconds[report.nodeid.partition("::")[0]] += report.duration
    if report.failed and FAILURES and not IS_WORKER:
        os.write(FAILURES, f"\nFAILED {report.nodeid} ({report.when})\n".encode())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if number := config.getoption("durations"):
        terminalreporter.section(f"slowest {number} files")
        for name, duration in seconds.most_common(number):
            terminalreporter.write_line(f"{duration:8.1f}s {name}")
