"""What parsers of several dialects share. Nothing a model writes is ever evaluated.

Calls of a tool, code of pyautogui and tags, each by a whitelist; thoughts before them and words around them.
"""
