"""Whether what was measured can be chance: paired tests, t, many tests together."""
