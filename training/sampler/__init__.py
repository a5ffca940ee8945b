"""The policy server: samples completions for episodes."""
