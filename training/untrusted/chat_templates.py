"""Chat templates that others made: rendered in a sandbox, by a process of its own, within limits.

A template cannot leave the sandbox, but it may loop for ever, or make a text that fills the memory.
Source of what a template may use: `transformers.utils.chat_template_utils`.

    python -m training.untrusted.chat_templates < [template, values, talks]     # a JSON list of texts
"""

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

MEMORY_BYTES = 1 << 29
LIMIT_STARTS = 20
"""What a template may cost, in starts of its process: seconds would refuse good ones where machines are slow.
The slowest of those that trl carries costs 0.7."""


class BadTemplate(ValueError):
    """Raised when a template cannot be rendered; the message says why."""


def rendered(
    template: str, values: Mapping[str, str], talks: Sequence[Sequence[tuple[str, str]]]
) -> list[str]:
    """Each talk of (role, words), laid out up to the answer to come. Raises BadTemplate."""
    command, root = [sys.executable, "-m", "training.untrusted.chat_templates"], Path(__file__).parents[2]
    request = json.dumps([template, values, talks])
    done = subprocess.run(command, cwd=root, input=request, capture_output=True, text=True, check=False)
    if done.returncode:
        kind, _, words = done.stderr.strip().rpartition("\n")[2].partition(": ")
        raise BadTemplate(words or kind or "it takes far longer than others do")
    found: list[str] = json.loads(done.stdout)
    return found


class _Generation(Extension):
    """What marks an answer's own words changes nothing of the text."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _refuse(message: str) -> None:
    raise TemplateError(message)


def main() -> None:
    """The process that renders."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    limit_s = math.ceil((1 + LIMIT_STARTS) * time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))
    template, values, talks = json.load(sys.stdin)
    sandbox = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    sandbox.filters["tojson"] = partial(json.dumps, ensure_ascii=False)
    sandbox.globals |= {"raise_exception": _refuse, "strftime_now": datetime.now().strftime}
    layout = sandbox.from_string(template, {**values, "tools": None, "documents": None})
    messages = ([{"role": role, "content": words} for role, words in talk] for talk in talks)
    texts = [layout.render(messages=each, add_generation_prompt=True) for each in messages]
    sys.stdout.write(json.dumps(texts))


if __name__ == "__main__":
    main()
