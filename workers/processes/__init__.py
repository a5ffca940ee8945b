"""Child processes of workers: how they start, what proves that they are ours, how they end."""
