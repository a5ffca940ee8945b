"""Where a rule tells it: one folder and one row each."""
