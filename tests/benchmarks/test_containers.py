"""The compose file on a real engine, from its first build to its end: `make test-containers`."""

from __future__ import annotations

import pytest

from benchmarks.containers import walk
from testing.containers import engine
from testing.session.environment import ON_POSTGRES

MISSING = engine.missing()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
    pytest.mark.skipif(ON_POSTGRES, reason="containers bring their own database"),
]


def test_containers_are_upgraded_used_hurt_and_stopped_without_loss():
    try:
        found = walk("HEAD~1")
    except engine.NoEngine as missing:
        pytest.skip(str(missing))
    assert [step for step in found["steps"] if not step["passed"]] == []
