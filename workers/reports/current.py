"""The reports of this process."""

from workers.reports.contract import Reports
from workers.reports.local import LocalReports

_current: list[Reports] = [LocalReports()]


def reports() -> Reports:
    """Those of this process: local, unless it is a joined host's."""
    return _current[0]


def use_reports(new: Reports) -> Reports:
    """Take these from now on; those that were used before. Called once, as a joined host's process begins."""
    before, _current[0] = _current[0], new
    return before
