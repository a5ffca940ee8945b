"""Qwen3-VL, Instruct and Thinking: an "Action:" line, then a computer_use call in its tags."""
