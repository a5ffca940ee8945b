"""Runs in OSWorld's own environment: standard library, requests and desktop_env, nothing of ours.

Started as `python -m workers.environments.osworld.child` in a private folder; `__main__` answers one call at
a time.
"""
