"""The doctor's line on isolation is what the provider of desktops sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from webapp.lib.supervisor import doctor
from workers.desktops.x11.sandbox import sandbox_problem


def test_it_says_what_the_desktops_see() -> None:
    finding, problem = doctor.isolation(), sandbox_problem()
    assert finding.is_good == (not problem)
    wanted = f"{problem}: no desktops, or with --unsafe-desktops weak ones" if problem else "bubblewrap works"
    assert finding.text.startswith(wanted)


def test_a_missing_bubblewrap_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    finding = doctor.isolation()
    assert not finding.is_good
    assert finding.is_needed
    assert "bubblewrap (bwrap) is not installed; run `make setup`: no desktops" in finding.text
