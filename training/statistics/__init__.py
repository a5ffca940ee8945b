"""Intervals, and whether what was measured can be chance: shares, t, paired tests, agreement."""
