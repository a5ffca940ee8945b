"""A tiny random Qwen3-VL for tests and for runs from scratch."""
