"""Which waiting experiment gets which GPUs of which gpu worker."""
