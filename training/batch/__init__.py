"""Samples and the microbatches made of them."""
