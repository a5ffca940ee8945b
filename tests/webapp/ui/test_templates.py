"""Templates show no tag as text: Django reads a tag only where it begins and ends on one line."""

import re

import pytest
from django.template.base import TextNode
from django.template.loader import get_template

from testing.paths import REPOSITORY

FOLDER = REPOSITORY / "templates"
NAMES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.html"))
TAG = re.compile(r"\{[{%#].*|.*[}%#]\}")


@pytest.mark.parametrize("name", NAMES)
def test_no_tag_is_shown_as_text(name: str):
    nodes = get_template(name).template.nodelist.get_nodes_by_type(TextNode)
    assert [shown for node in nodes for shown in TAG.findall(node.s)] == []
