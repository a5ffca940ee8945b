"""What an OpenDocument file (.odt, .ods, .odp) says, as plain JSON values that `check_json` compares.

    {"paragraphs": [{"text", "style", "align", "bold", "italic", "underline"}], "landscape": bool,
     "tables": [{"rows", "columns"}], "lists": number of items, "num_paragraphs"}               of an .odt
    {"sheets": [{"name", "cells": {"A1": {"value", "formula", "bold"}}}]}                     of an .ods
    {"slides": [{"name", "texts": [...], "notes": [...]}]}                                    of an .odp

A paragraph or cell is bold (italic, underlined) when all of its text is.

The file was written inside the desktop, by a program that may want its evaluator to fail: whatever is in it
costs seconds at most, and what is no document that LibreOffice would write is none.
"""

import io
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

MAX_FILE_BYTES = 8 << 20
"""A larger file may list more parts than memory holds."""
MAX_BYTES = 4 << 20
"""Of one part of a file, unpacked."""
MAX_DEPTH = 40
"""Of elements, and of styles that inherit."""
MAX_REPEATED = 256
"""Cells and rows that one element may stand for, where they hold something."""
MAX_CELLS = 100_000
"""Of a document, with those that one element stands for."""
URN = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
OFFICE, TEXT, TABLE, STYLE, DRAW = (URN % name for name in ("office", "text", "table", "style", "drawing"))
FO, PRESENTATION = URN % "xsl-fo-compatible", URN % "presentation"
UNREADABLE = (
    zipfile.BadZipFile, zlib.error, EOFError, KeyError, ElementTree.ParseError, NotImplementedError,
    RuntimeError, ValueError, OverflowError,
)  # fmt: skip
"""No zip; broken, packed otherwise, or with a password; without a part; no XML; too big; no number."""
FACES = {
    "bold": (f"{FO}font-weight", {"bold"}),
    "italic": (f"{FO}font-style", {"italic"}),
    "underline": (f"{STYLE}text-underline-style", {"solid"}),
}
"""Face of text -> the attribute that says it, and its values."""


def office_document(data: bytes | None) -> dict[str, Any] | None:
    """The document's values; None when there is no file or it is no readable OpenDocument file."""
    if data is None or len(data) > MAX_FILE_BYTES:
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            content, styles = _part(archive, "content.xml"), _part(archive, "styles.xml")
        return _document(content, styles)
    except UNREADABLE:
        return None


def _document(content: Element, styles: Element) -> dict[str, Any] | None:
    looks = _Looks(content, styles)
    body = content.find(f"{OFFICE}body")
    for kind in body if body is not None else ():
        if kind.tag == f"{OFFICE}text":
            return _text(kind, looks, styles)
        if kind.tag == f"{OFFICE}spreadsheet":
            room = [MAX_CELLS]
            return {"sheets": [_sheet(table, looks, room) for table in kind.iter(f"{TABLE}table")]}
        if kind.tag == f"{OFFICE}presentation":
            slides = [_slide(page) for page in kind.iter(f"{DRAW}page")]
            return {"num_slides": len(slides), "slides": slides}
    return None


def _part(archive: zipfile.ZipFile, name: str) -> Element:
    """One XML part. Raises ValueError when it is too big, nested too deep, or defines entities."""
    if archive.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} is packed by another method than deflate")
    with archive.open(name) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"{name} is too big")
    text = data.decode()
    if "<!DOCTYPE" in text:
        raise ValueError(f"{name} defines entities")
    root = ElementTree.fromstring(text)
    level = [root]
    for _ in range(MAX_DEPTH):
        level = [child for element in level for child in element]
        if not level:
            return root
    raise ValueError(f"{name} is nested too deep")


class _Looks:
    """The styles of a document by name, with what they inherit."""

    def __init__(self, *documents: Element) -> None:
        self._styles: dict[str, Element] = {}
        for document in reversed(documents):
            self._styles |= {str(s.get(f"{STYLE}name")): s for s in document.iter(f"{STYLE}style")}

    def chain(self, name: str | None) -> Iterator[Element]:
        """The style and its ancestors, also where they are their own."""
        for _ in range(MAX_DEPTH):
            if not name or name not in self._styles:
                return
            yield self._styles[name]
            name = self._styles[name].get(f"{STYLE}parent-style-name")

    def attribute(self, name: str | None, properties: str, attribute: str) -> str | None:
        """The nearest value of an attribute of text or paragraph properties."""
        for style in self.chain(name):
            found = style.find(f"{STYLE}{properties}-properties")
            if found is not None and found.get(attribute) is not None:
                return found.get(attribute)
        return None

    def named(self, name: str | None) -> str:
        """The style as people know it ("Heading 1"): automatic styles stand for their parent."""
        for style in self.chain(name):
            if style.get(f"{STYLE}display-name") or not str(style.get(f"{STYLE}name"))[1:].isdigit():
                return str(style.get(f"{STYLE}display-name") or style.get(f"{STYLE}name"))
        return ""

    def faces(self, name: str | None, inherited: dict[str, bool]) -> dict[str, bool]:
        """Faces of text in this style, where the surrounding text has the inherited ones."""
        found = {face: self.attribute(name, "text", key) for face, (key, _) in FACES.items()}
        return {
            face: inherited[face] if value is None else value in FACES[face][1]
            for face, value in found.items()
        }


PLAIN = dict.fromkeys(FACES, False)


def _runs(element: Element, looks: _Looks, faces: dict[str, bool]) -> Iterator[tuple[str, dict[str, bool]]]:
    """(text, faces) of a paragraph, in order."""
    yield element.text or "", faces
    for child in element:
        if child.tag == f"{TEXT}s":
            yield " " * min(int(child.get(f"{TEXT}c") or 1), MAX_REPEATED), faces
        elif child.tag in (f"{TEXT}tab", f"{TEXT}line-break"):
            yield "\t" if child.tag == f"{TEXT}tab" else "\n", faces
        elif child.tag != f"{OFFICE}annotation":
            yield from _runs(child, looks, looks.faces(child.get(f"{TEXT}style-name"), faces))
        yield child.tail or "", faces


def _of_all(runs: list[tuple[str, dict[str, bool]]]) -> dict[str, bool]:
    shown = [faces for text, faces in runs if text.strip()]
    return {face: bool(shown) and all(faces[face] for faces in shown) for face in FACES}


def _text(body: Element, looks: _Looks, styles: Element) -> dict[str, Any]:
    pages = [page.get(f"{STYLE}print-orientation") for page in styles.iter(f"{STYLE}page-layout-properties")]
    paragraphs = [p for p in body.iter() if p.tag in (f"{TEXT}p", f"{TEXT}h")]
    return {
        "num_paragraphs": len(paragraphs),
        "paragraphs": [_paragraph(paragraph, looks) for paragraph in paragraphs],
        "landscape": "landscape" in pages,
        "tables": [_size(table) for table in body.iter(f"{TABLE}table")],
        "lists": sum(1 for _ in body.iter(f"{TEXT}list-item")),
    }


def _paragraph(paragraph: Element, looks: _Looks) -> dict[str, Any]:
    name = paragraph.get(f"{TEXT}style-name")
    runs = list(_runs(paragraph, looks, looks.faces(name, PLAIN)))
    return {
        "text": "".join(text for text, _ in runs),
        "style": looks.named(name),
        "align": looks.attribute(name, "paragraph", f"{FO}text-align") or "start",
        **_of_all(runs),
    }


def _size(table: Element) -> dict[str, int]:
    columns = (int(c.get(f"{TABLE}number-columns-repeated") or 1) for c in table.iter(f"{TABLE}table-column"))
    return {"rows": sum(1 for _ in table.iter(f"{TABLE}table-row")), "columns": sum(columns)}


def _sheet(table: Element, looks: _Looks, room: list[int]) -> dict[str, Any]:
    """`room`: how many cells the document may still have. Raises ValueError."""
    cells: dict[str, dict[str, Any]] = {}
    columns = list(_column_styles(table))
    top = 0
    for row in table.iter(f"{TABLE}table-row"):
        left, times = 0, int(row.get(f"{TABLE}number-rows-repeated") or 1)
        for cell in row:
            if cell.tag not in (f"{TABLE}table-cell", f"{TABLE}covered-table-cell"):
                continue
            width = int(cell.get(f"{TABLE}number-columns-repeated") or 1)
            column = columns[left] if left < len(columns) else None
            style = cell.get(f"{TABLE}style-name") or row.get(f"{TABLE}default-cell-style-name") or column
            if (value := _cell(cell, looks, style)) is not None:
                room[0] -= min(times, MAX_REPEATED) * min(width, MAX_REPEATED)
                if room[0] < 0:
                    raise ValueError(f"more than {MAX_CELLS} cells")
                for down in range(min(times, MAX_REPEATED)):
                    for across in range(min(width, MAX_REPEATED)):
                        cells[f"{_letters(left + across)}{top + down + 1}"] = value
            left += width
        top += times
    return {"name": table.get(f"{TABLE}name"), "cells": cells}


def _column_styles(table: Element) -> Iterator[str | None]:
    """What cells without a style of their own have, column by column."""
    for column in table.iter(f"{TABLE}table-column"):
        times = int(column.get(f"{TABLE}number-columns-repeated") or 1)
        yield from [column.get(f"{TABLE}default-cell-style-name")] * min(times, MAX_REPEATED)


def _cell(cell: Element, looks: _Looks, style: str | None) -> dict[str, Any] | None:
    """Value (a number, or text), formula and face; None when the cell is empty."""
    number, formula = cell.get(f"{OFFICE}value"), cell.get(f"{TABLE}formula")
    runs = [run for p in cell.findall(f"{TEXT}p") for run in _runs(p, looks, looks.faces(style, PLAIN))]
    text = "".join(part for part, _ in runs)
    if number is None and formula is None and not text:
        return None
    return {
        "value": text if number is None else float(number),
        "formula": formula,
        "bold": _of_all(runs)["bold"],
    }


def _letters(column: int) -> str:
    """A, B ... Z, AA ..."""
    name = ""
    while column >= 0:
        name = chr(ord("A") + column % 26) + name
        column = column // 26 - 1
    return name


def _slide(page: Element) -> dict[str, Any]:
    notes = page.find(f"{PRESENTATION}notes")
    frames = [frame for frame in page if frame.tag != f"{PRESENTATION}notes"]
    return {
        "name": page.get(f"{DRAW}name"),
        "texts": [text for frame in frames for text in _texts(frame)],
        "notes": list(_texts(notes)) if notes is not None else [],
    }


def _texts(element: Element) -> Iterator[str]:
    for paragraph in element.iter(f"{TEXT}p"):
        if text := "".join(paragraph.itertext()).strip():
            yield text
