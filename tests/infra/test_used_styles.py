"""Of the framework's stylesheet browsers get what our pages can use, and no more."""

import re

import pytest
from django.conf import settings

from testing.paths import REPOSITORY
from webapp.lib.static_files.used_styles import used_styles, words_of_pages

TABLER = REPOSITORY / "node_modules" / "@tabler" / "core" / "dist" / "css" / "tabler.min.css"
CLASS = re.compile(r"(?<=[{},/])\.([a-zA-Z][\w-]*)(?=[{,])")
"""That a rule styles by itself."""
WORDS = frozenset({"btn", "card", "w-1", "2"})


@pytest.fixture(scope="module")
def served() -> str:
    return used_styles(TABLER.read_text(), words_of_pages())


@pytest.mark.parametrize(
    ("css", "kept"),
    [
        (".btn{a:b}.nav{c:d}", ".btn{a:b}"),
        (".btn .nav,.card>.btn,.nav{a:b}", ".card>.btn{a:b}"),
        ("body,.nav{a:b}", "body{a:b}"),
        (".btn:not(.nav,:is(.x)){a:b}", ".btn:not(.nav,:is(.x)){a:b}"),
        (":is(.nav,.btn){a:b}", ":is(.nav,.btn){a:b}"),
        ("[data-x='a,b{'].btn{a:url(\"}\")}.nav{}", "[data-x='a,b{'].btn{a:url(\"}\")}"),
        ("@media (a){.nav{b:c}}@media (d){.btn{e:f}.nav{g:h}}", "@media (d){.btn{e:f}}"),
        ("@media (a){@supports (b:c){.btn{d:e}}}", "@media (a){@supports (b:c){.btn{d:e}}}"),
        (
            "@keyframes nav{0%{a:b}to{c:d}}@charset 'x';#nav{a:b}",
            "@keyframes nav{0%{a:b}to{c:d}}@charset 'x';",
        ),
        (r".w-1\/2{a:b}.w-1\/3{a:b}", r".w-1\/2{a:b}"),
        ("@a b;/*! MIT { */.btn{a:b}/* x */.nav{c:d}", "@a b;.btn{a:b}/*! MIT { */"),
    ],
)
def test_a_rule_stays_when_its_names_are_words_of_ours(css: str, kept: str):
    assert used_styles(css, WORDS) == kept


def test_every_class_of_a_template_that_the_framework_styles_is_served(served: str):
    whole, left = (set(CLASS.findall(css)) for css in (TABLER.read_text(), served))
    templates = (settings.BASE_DIR / "templates").rglob("*.html")
    named = {name for file in templates for text in re.findall(r'class="([^"]*)"', file.read_text())
             for name in re.findall(r"[\w-]+", text)}  # fmt: skip
    assert {"btn-primary", "form-select", "text-secondary", "visually-hidden"} <= named & whole
    assert named & whole <= left


def test_less_than_a_quarter_of_it_is_left(served: str):
    whole = TABLER.read_text()
    assert len(served) < len(whole) / 4
    assert served.startswith('@charset "UTF-8";:root{')
    assert "Licensed under MIT" in served
    assert ".carousel" not in served
