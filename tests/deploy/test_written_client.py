"""The typed half of the Python client is what the API's schema says."""

from scripts.write_client import written


def test_the_written_client_is_that_of_the_schema():
    stale = [file.name for file, text in written().items() if file.read_text() != text]
    assert stale == [], "run .venv/bin/python -m scripts.write_client"
