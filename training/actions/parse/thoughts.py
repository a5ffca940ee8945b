"""Where the answer begins: thinking models write their thoughts first, which may quote any action."""

import re

_OPENED = re.compile(r"\s*<(think|thinking)>")
_CLOSED = re.compile(r"</(?:think|thinking)>(?:[ \t]*(?:\n|\Z)|\s*<tool_call>\s*(?:\{\s*\"|<function=))")
"""For thoughts that the chat template opened. Where actions type it, quotes and lines are escaped."""


def answer_start(text: str) -> int:
    """Index behind the thoughts; 0 when the text has none, or does not end them."""
    opened = _OPENED.match(text)
    if opened:
        mark = f"</{opened[1]}>"
        end = text.find(mark, opened.end())
        return end + len(mark) if end >= 0 else 0
    closed = _CLOSED.search(text)
    return text.index(">", closed.start()) + 1 if closed else 0


def words_around(text: str, start: int, end: int) -> str:
    """What stands before and after an action, without the marks of thoughts."""
    before = text[:start].strip()
    for mark in ("<think>", "<thinking>"):
        before = before.removeprefix(mark)
    for mark in ("</think>", "</thinking>"):
        head, found, tail = before.partition(mark)
        before = f"{head.strip()}\n{tail.strip()}".strip() if found else before
    return "\n".join(part for part in (before.strip(), text[end:].strip()) if part)
