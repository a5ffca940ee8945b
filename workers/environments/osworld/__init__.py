"""xlang-ai's DesktopEnv in a process of its own: its pinned packages cannot live beside ours.

env worker ── JSON lines over two pipes ──> child (.venv-osworld): one DesktopEnv ── HTTP ──> desktop
"""
