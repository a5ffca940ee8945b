"""What templates show as text: no tag, which Django reads only on one line, and no file that is a link."""

import re

import pytest
from django.template.base import TextNode
from django.template.loader import get_template

from testing.paths import REPOSITORY

FOLDER = REPOSITORY / "templates"
NAMES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.html"))
TAG = re.compile(r"\{[{%#].*|.*[}%#]\}")


DOCUMENT = re.compile(r"docs/[\w-]+\.md")


@pytest.mark.parametrize("name", NAMES)
def test_no_tag_and_no_documents_file_is_shown_as_text(name: str):
    nodes = get_template(name).template.nodelist.get_nodes_by_type(TextNode)
    assert [shown for node in nodes for shown in [*TAG.findall(node.s), *DOCUMENT.findall(node.s)]] == []
