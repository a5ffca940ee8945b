"""Programs that attack the desktop they run in, and what says whether they succeed.

Each runs against the sandbox as it is and against one with a defence left out, so that a test can fail.
"""
