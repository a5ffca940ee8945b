"""Bodies of API requests."""

from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser

from webapp.lib.request_values import json_object


class StrictParser(Parser):
    """A JSON object whose numbers, text and depth can be stored."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Raises BadValue."""
        return json_object(request.body, "body")
