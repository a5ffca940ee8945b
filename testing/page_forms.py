"""The forms of a page, as a browser would send them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin

TYPED = {"text", "number", "search", "email", "url", "password", "hidden", "date", "datetime-local"}


@dataclass
class Form:
    """One form: where it goes, and what stands in its fields."""

    path: str
    method: str
    values: dict[str, list[str]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for forms that ask the same of another row."""
        return (re.sub(r"\d+", "0", self.path), self.method, *sorted(self.values))


class _Reader(HTMLParser):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self.forms: list[Form] = []
        self._by_id: dict[str, Form] = {}
        self._open: Form | None = None
        self._select = ""
        self._text_area = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = Form(
                urljoin(self._path, found.get("action", "")), found.get("method", "get").lower()
            )
            self.forms.append(self._open)
            self._by_id[found.get("id", "")] = self._open
            return
        form = self._by_id.get(found["form"]) if "form" in found else self._open
        name = found.get("name", "")
        if form is None or (not name and tag != "option"):
            return
        if tag == "input":
            kind = found.get("type", "text")
            is_set = kind in TYPED or "checked" in found
            form.values.setdefault(name, []).extend([found.get("value", "on")] if is_set else [])
        elif tag == "button":
            form.values.setdefault(name, [found.get("value", "")])
        elif tag == "select":
            self._select = name
            form.values.setdefault(name, [])
        elif tag == "textarea":
            self._text_area = name
            form.values[name] = [""]
        elif tag == "option" and self._select:
            chosen = form.values[self._select]
            if not chosen or "selected" in found:
                chosen[:] = [found.get("value", "")]

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None
        elif tag == "select":
            self._select = ""
        elif tag == "textarea":
            self._text_area = ""

    def handle_data(self, data: str) -> None:
        if self._open and self._text_area:
            self._open.values[self._text_area][0] += data


def forms_of(path: str, html: str) -> list[Form]:
    """All forms that change something."""
    reader = _Reader(path)
    reader.feed(html)
    return [form for form in reader.forms if form.method == "post"]
