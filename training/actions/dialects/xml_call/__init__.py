"""Qwen3.5: the call of the tool as XML."""
