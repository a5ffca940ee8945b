"""SmolLM2-135M-Instruct, a published language model that two cores can train, from a package of PyPI."""
