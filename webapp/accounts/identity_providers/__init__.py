"""Ways to sign in beside a password of ours: one folder and one row each."""
