"""Held-out curves of experiments that differ in one setting, compared at equal steps and seconds."""

from __future__ import annotations

from typing import Any


def side_by_side(arms: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Held-out success of all arms after the same number of steps, and after the same number of seconds."""
    curves = {
        one["staleness"]: {item["step"]: item for item in one["held_out"] if item["name"] != "before"}
        for one in arms
    }
    if len(curves) < 2 or not all(curves.values()):
        return {"steps": [], "seconds": []}
    common = sorted(set.intersection(*(set(curve) for curve in curves.values())))
    last_s = min(max(item["at_s"] for item in curve.values()) for curve in curves.values())
    moments = [last_s * part / 4 for part in range(1, 5)]
    return {
        "steps": [
            {"step": step, **{f"staleness {s}": curve[step]["success"] for s, curve in curves.items()}}
            for step in common
        ],
        "seconds": [
            {"seconds": moment, **{f"staleness {s}": latest(curve, moment) for s, curve in curves.items()}}
            for moment in moments
        ],
    }


def latest(curve: dict[int, dict[str, Any]], moment: float) -> float | None:
    """Success of the last evaluation that had ended by then; None before the first one."""
    ended = [item for item in curve.values() if item["at_s"] <= moment + 1e-6]
    return max(ended, key=lambda item: item["at_s"])["success"] if ended else None
