"""YAML texts of people: plain values only, bounded in depth, without aliases, and every key once.

An alias makes a value appear many times: nine lines of them hold a billion values to walk. Of a key that
stands twice the last would count, without a word.
"""

from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.error import MarkedYAMLError

MAX_DEPTH = 12
MAX_DIGITS = 40
TIMESTAMP = "tag:yaml.org,2002:timestamp"


class UnusableYaml(ValueError):
    """Raised for a text that is no YAML, or more than a config may hold; the message names the place."""


class _Loader(yaml.SafeLoader):
    """Dates stay text: no config has one."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        mark = self.peek_event().start_mark
        if self.check_event(yaml.AliasEvent):
            raise ComposerError(None, None, "aliases (*name) are not read; write the value out", mark)
        if self.depth >= MAX_DEPTH:
            raise ComposerError(None, None, f"nested deeper than {MAX_DEPTH} levels", mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key in (one for one, _ in node.value if isinstance(one, yaml.ScalarNode)):
            if key.value in lines:
                problem = f"{key.value} is there twice, first in line {lines[key.value]}"
                raise ComposerError(None, None, problem, key.start_mark)
            lines[key.value] = key.start_mark.line + 1
        return node


_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in found if tag != TIMESTAMP]
    for letter, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _whole_number(loader: _Loader, node: yaml.ScalarNode) -> int:
    if len(node.value) > MAX_DIGITS:
        raise ComposerError(None, None, f"a number of more than {MAX_DIGITS} characters", node.start_mark)
    return yaml.SafeLoader.construct_yaml_int(loader, node)


_Loader.add_constructor("tag:yaml.org,2002:int", _whole_number)


def load_yaml(text: str) -> Any:
    """The value of one document. Raises UnusableYaml."""
    try:
        return yaml.load(text, Loader=_Loader)  # a SafeLoader
    except (yaml.YAMLError, ValueError, TypeError, ArithmeticError) as error:
        raise UnusableYaml(_in_words(error)) from error


def _in_words(error: Exception) -> str:
    """On one line, with the place in front."""
    if not isinstance(error, MarkedYAMLError) or error.problem_mark is None:
        return " ".join(str(error).split()).replace(' in "<unicode string>", position', ": character")
    mark, context = error.problem_mark, f" ({error.context})" if error.context else ""
    return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}{context}"
