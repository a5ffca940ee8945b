"""Which programs a command of a task starts, as far as its words tell."""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

SHELLS = ("bash", "sh")
KEYWORDS = frozenset(("!", "{", "if", "then", "else", "elif", "do", "while", "until"))
BUILTINS = KEYWORDS | {
    "cd", "export", "echo", "test", "[", "[[", ":", ".", "source", "read", "set", "unset", "exit", "history",
    "true", "false", "printf", "kill", "alias", "type", "pwd", "wait", "exec", "eval",
    "}", "fi", "done", "for", "case", "esac", "in",
}  # fmt: skip
"""Words at a command's place that start no program of their own; what follows a keyword is looked at."""
OPERATORS = frozenset("();<>|&")
ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
INNER = re.compile(r"\$\(([^()]*)\)")
PROGRAM_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin")


def programs_of(command: object) -> list[str]:
    """Names of the programs in a command: a list of words, or a line for the shell.

    Files of the task's own (./setup.sh) are no programs. An unreadable line has none.
    """
    if isinstance(command, str):
        found = _of_line(command)
    elif isinstance(command, Sequence) and command:
        found = _of_words([str(word) for word in command])
    else:
        return []
    return list(dict.fromkeys(found))


def _of_words(words: list[str]) -> Iterator[str]:
    if len(words) == 1:  # a whole line in a list, for `shell`
        yield from _of_line(words[0])
        return
    yield from _program(words[0])
    if PurePosixPath(words[0]).name in SHELLS and "-c" in words[:-1]:
        yield from _of_line(words[words.index("-c") + 1])


def _of_line(line: str) -> Iterator[str]:
    lexer = shlex.shlex(line.replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:  # a quote without its end
        return
    is_first = True
    for before, word in zip(["", *words], words, strict=False):
        if set(word) <= OPERATORS:
            is_first = not set(word) & set("<>)")
        elif is_first and not ASSIGNMENT.match(word) and not before.endswith((">", "<")):
            is_first = word in KEYWORDS
            if word not in BUILTINS:
                yield from _program(word)
    for inner in INNER.findall(line):
        yield from _of_line(inner)


def _program(word: str) -> Iterator[str]:
    path = PurePosixPath(word)
    if ("/" not in word or str(path.parent) in PROGRAM_FOLDERS) and not word.startswith(("$", "-")):
        yield path.name
