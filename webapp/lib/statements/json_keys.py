"""Texts at keys of JSON columns, in queries.

A plain key transform (`F("completion__text")`) gives what SQLite's JSON functions answer, which Django parses
once more: a text that is JSON itself, as completions are, comes back as an object, a number or None.
`tests/webapp/lib/test_json_keys.py` refuses such transforms.
"""

from django.db.models.fields.json import KeyTextTransform


def text_of(path: str) -> KeyTextTransform:
    """The text at `path` ("completion__text"), as it was stored; None where the column or key is missing."""
    return KeyTextTransform.from_lookup(path)
