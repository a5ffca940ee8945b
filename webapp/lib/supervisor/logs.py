"""The output of the supervised processes: prefixed on the terminal, plain in one file each."""

import contextlib
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from training.log_lines import JSON_START

LARGEST_FILE_BYTES = 20 << 20
NAME_WIDTH = 10
COLOURS = (36, 33, 35, 32, 34, 96, 93, 95)
RESET = "\033[0m"
TAIL_LINES = 15


class Terminal:
    """Writes `name | line`, each name in its own colour when the terminal can."""

    def __init__(self, *, show_children: bool = True) -> None:
        self.show_children = show_children
        self.coloured = sys.stdout.isatty()
        self.names: list[str] = []

    def write(self, name: str, text: str) -> None:
        label = f"{name:<{NAME_WIDTH}}|"
        if self.coloured:
            if name not in self.names:
                self.names.append(name)
            colour = COLOURS[self.names.index(name) % len(COLOURS)]
            label = f"\033[{colour}m{label}{RESET}"
        try:
            sys.stdout.write(f"{label} {text}\n")
            sys.stdout.flush()
        except BrokenPipeError:  # our output is read no more; the files go on
            self.show_children = False
        except OSError:  # it goes into a file whose disk is full: a line is lost, and nothing else
            pass

    def writer(self, name: str) -> Callable[[str], None]:
        """A function that shows lines of one child."""

        def show(text: str) -> None:
            if self.show_children:
                self.write(name, text)

        return show


class ProcessLog:
    """One process's output: `<folder>/<name>.log`, and the file before it as `.log.1`.

    On a full disk lines are lost and nothing else: who stops reading a process's output stops the process.
    """

    def __init__(self, folder: Path, name: str, show: Callable[[str], None]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{name}.log"
        self.show = show
        self.file = self.path.open("ab", buffering=0)
        self.num_lost = 0

    def write(self, text: str) -> None:
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        line = text if text.startswith(JSON_START) else f"{stamp}Z {text}"  # JSON has its own time
        lost = f"{stamp}Z {self.num_lost} lines are lost: the disk was full\n" if self.num_lost else ""
        try:
            # Without a buffer: what could not be written would stay in it and fail again with the next line.
            self.file.write(f"{lost}{line}\n".encode(errors="replace"))
            self.num_lost = 0
            if self.file.tell() > LARGEST_FILE_BYTES:
                self.rotate()
        except OSError:
            self.num_lost += 1
        self.show(text)

    def rotate(self) -> None:
        with contextlib.suppress(FileNotFoundError):  # the last try had no room for a new file
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))
        fresh = self.path.open("ab", buffering=0)
        self.file.close()
        self.file = fresh

    def tail(self) -> list[str]:
        """The last lines written."""
        return self.path.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]

    def close(self) -> None:
        self.file.close()
