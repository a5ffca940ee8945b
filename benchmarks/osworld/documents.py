"""Documents for osworld_compat, made with OSWorld's packages; JSON {name: base64} on stdout.

Run by `.venv-osworld/bin/python`, not by ours.
"""

from __future__ import annotations

import base64
import io
import json
import sqlite3
import sys
import tempfile
from pathlib import Path

import docx
import openpyxl
import pptx
import pypdf
from PIL import Image


def saved(document: object) -> bytes:
    out = io.BytesIO()
    document.save(out)  # type: ignore[attr-defined]
    return out.getvalue()


def text_document(*paragraphs: str) -> bytes:
    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    return saved(document)


def table(*rows: tuple[object, ...]) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    return saved(book)


def slides(width: int, height: int) -> bytes:
    presentation = pptx.Presentation()
    presentation.slide_width, presentation.slide_height = width, height
    presentation.slides.add_slide(presentation.slide_layouts[6])
    return saved(presentation)


def pages(count: int) -> bytes:
    writer, out = pypdf.PdfWriter(), io.BytesIO()
    for _ in range(count):
        writer.add_blank_page(200, 200)
    writer.write(out)
    return out.getvalue()


def picture(size: tuple[int, int]) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, "teal").save(out, "PNG")
    return out.getvalue()


def database(count: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        with sqlite3.connect(path) as connection:
            connection.execute("create table orders (paid integer)")
            connection.executemany("insert into orders values (?)", [(1,)] * count)
        connection.close()
        return path.read_bytes()


MADE = {
    "draft.docx": text_document("Report", "The lamp is red."),
    "final.docx": text_document("Report", "The lamp is blue."),
    "old.xlsx": table(("item", "price"), ("lamp", 12)),
    "new.xlsx": table(("item", "price"), ("lamp", 12), ("chair", 30)),
    "wide.pptx": slides(9144000, 5143500),
    "tall.pptx": slides(5143500, 9144000),
    "one.pdf": pages(1),
    "three.pdf": pages(3),
    "small.png": picture((40, 30)),
    "large.png": picture((80, 60)),
    "empty.db": database(0),
    "shop.db": database(3),
}

if __name__ == "__main__":
    json.dump({name: base64.b64encode(data).decode() for name, data in MADE.items()}, sys.stdout)
