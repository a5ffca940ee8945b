"""Stands for SGLang where there is no GPU: the same HTTP schema around the tiny transformers model."""
