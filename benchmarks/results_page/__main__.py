"""Write docs/results.md anew.

.venv/bin/python -m benchmarks.results_page        after a benchmark wrote its result
"""

from __future__ import annotations

import sys

from benchmarks.results_page.page import PAGE, page


def main() -> int:
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
