"""Qwen3-VL as the trainer runs it."""
