"""Answers that are files."""

from typing import Any


def binary_answer(*content_types: str) -> dict[str, Any]:
    """Keywords of an operation whose answer is a file of one of these types."""
    content = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in content_types}
    return {"openapi_extra": {"responses": {200: {"description": "The file.", "content": content}}}}
