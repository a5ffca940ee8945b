"""Evaluations read side by side: sampled and greedy, before and after, task by task."""
