"""Offline runs of Weights & Biases."""
