"""Whether screenshots are still those that the policy saw: each is named by the sha256 of its PNG.

A trainer that went on with a blank or another picture would train tokens in a context that no policy saw.
"""

import hashlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from training.rollouts.coordinator_client import CoordinatorRefused

THREADS = 8
"""Reading and hashing leave the interpreter to others."""


@dataclass(slots=True)
class PictureCheck:
    """Looks at each screenshot once."""

    png: Callable[[str], bytes]
    """sha256 -> its PNG; raises OSError or CoordinatorRefused when there is none."""
    found: dict[str, str] = field(default_factory=dict)
    """sha256 -> what is wrong with it; "" = nothing."""

    def lost(self, shas: Iterable[str]) -> dict[str, str]:
        """Those of `shas` that cannot be trained on, and why."""
        new = sorted({sha for sha in shas if sha not in self.found})
        if new:
            with ThreadPoolExecutor(THREADS) as threads:
                self.found |= zip(new, threads.map(self._look, new), strict=True)
        return {sha: why for sha in sorted(shas) if (why := self.found[sha])}

    def _look(self, sha256: str) -> str:
        try:
            png = self.png(sha256)
        except (OSError, CoordinatorRefused) as error:
            return f"is not there ({error})"
        return "" if hashlib.sha256(png).hexdigest() == sha256 else "is cut off, or another picture"
