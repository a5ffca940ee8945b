"""What a page says, however its template breaks lines."""

from django.http import HttpResponse


def page_text(response: HttpResponse) -> str:
    """The HTML of an answer with each run of whitespace as one space."""
    return " ".join(response.content.decode().split())
