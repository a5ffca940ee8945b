"""What evaluators read of OpenDocument files, the broken and the hostile ones too."""

import base64
import io
import zipfile

import pytest

from training.content.task_sets.desk_office.odf_files import (
    HEAD,
    SPACES,
    presentation,
    spreadsheet,
    text_document,
)
from workers.tasks.evaluators.office_document import MAX_BYTES, MAX_FILE_BYTES, office_document

BOLD = '<style:text-properties fo:font-weight="bold"/>'
FACED = (
    '<office:automatic-styles><style:style style:name="P1" style:family="paragraph">'
    '<style:paragraph-properties fo:text-align="center"/></style:style>'
    f'<style:style style:name="T1" style:family="text">{BOLD}</style:style></office:automatic-styles>'
)


def packed(base: str, **parts: str | bytes) -> bytes:
    """A document with these parts (content, styles) in place of its own."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(base))) as old, zipfile.ZipFile(file, "w") as new:
        names = dict.fromkeys([*old.namelist(), *(f"{name}.xml" for name in parts)])
        for name in names:
            stem = name.removesuffix(".xml")
            new.writestr(name, parts[stem] if stem in parts else old.read(name))
    return file.getvalue()


STYLES = f"{HEAD}<office:document-styles {SPACES}/>"


def content(styles: str, body: str) -> str:
    inner = f"{styles}<office:body>{body}</office:body>"
    return f"{HEAD}<office:document-content {SPACES}>{inner}</office:document-content>"


def test_a_letter_s_paragraphs_with_style_and_faces():
    bold = '<text:span text:style-name="T1">%s</text:span>'
    one = f'<text:p text:style-name="P1">{bold % "All bold"}</text:p>'
    two = f'<text:p>Half {bold % "bold"}<text:s text:c="2"/>here</text:p>'
    body = f"<office:text>{one}{two}</office:text>"
    found = office_document(packed(text_document(["x"]), content=content(FACED, body), styles=STYLES))
    first, second = found["paragraphs"]
    assert (first["text"], first["bold"], first["align"]) == ("All bold", True, "center")
    assert (second["text"], second["bold"], second["align"]) == ("Half bold  here", False, "start")
    assert found["num_paragraphs"] == 2


def test_a_sheet_s_cells_by_name_and_repeated_ones():
    plain = office_document(packed(spreadsheet([["Article", 3], ["lamps", 4.5]], "Stock"), styles=STYLES))
    assert plain["sheets"][0]["name"] == "Stock"
    assert plain["sheets"][0]["cells"]["B2"] == {"value": 4.5, "formula": None, "bold": False}
    empty = '<table:table-cell table:number-columns-repeated="%d"/>'
    sevens = (
        '<table:table-cell table:number-columns-repeated="2" office:value-type="float" office:value="7">'
        "<text:p>7</text:p></table:table-cell>"
    )
    rows = f'<table:table-row table:number-rows-repeated="1048574">{empty % 16384}</table:table-row>'
    rows += f"<table:table-row>{empty % 27}{sevens}</table:table-row>"
    row = f'<office:spreadsheet><table:table table:name="S">{rows}</table:table></office:spreadsheet>'
    found = office_document(packed(spreadsheet([[1]]), content=content("", row), styles=STYLES))
    assert list(found["sheets"][0]["cells"]) == ["AB1048575", "AC1048575"]


def test_a_cell_is_bold_by_its_own_style_its_row_s_or_its_column_s():
    style = f'<style:style style:name="b">{BOLD}</style:style>'
    looks = f"<office:automatic-styles>{style}</office:automatic-styles>"
    cell = '<table:table-cell%s office:value-type="string"><text:p>x</text:p></table:table-cell>'
    columns = '<table:table-column/><table:table-column table:default-cell-style-name="b"/>'
    plain, own = cell % "", cell % ' table:style-name="b"'
    row = f"<table:table-row>{own}{plain}{plain}</table:table-row>"
    bold_row = f'<table:table-row table:default-cell-style-name="b">{plain}</table:table-row>'
    table = f'<table:table table:name="S">{columns}{row}{bold_row}</table:table>'
    body = f"<office:spreadsheet>{table}</office:spreadsheet>"
    found = office_document(packed(spreadsheet([[1]]), content=content(looks, body), styles=STYLES))
    cells = found["sheets"][0]["cells"]
    assert {name: cell["bold"] for name, cell in cells.items()} == {
        "A1": True,
        "B1": True,
        "C1": False,
        "A2": True,
    }


def test_the_slides_of_a_talk():
    found = office_document(base64.b64decode(presentation([("One", "first"), ("Two", "second")])))
    assert found["num_slides"] == 2
    assert [slide["texts"] for slide in found["slides"]] == [["One", "first"], ["Two", "second"]]


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"no zip",
        base64.b64decode(text_document(["x"])) + bytes(MAX_FILE_BYTES),
        packed(text_document(["x"]), content="<broken", styles=STYLES),
        packed(text_document(["x"]), content=b" " * (MAX_BYTES + 1), styles=STYLES),
        packed(text_document(["x"]), content=content("", ""), styles=STYLES),
    ],
    ids=["missing", "empty", "no zip", "large file", "broken", "too big", "without a body"],
)
def test_what_cannot_be_read_is_no_document(data):
    assert office_document(data) is None


CELL = (
    '<table:table-row table:number-rows-repeated="256"><table:table-cell table:number-columns-repeated="256">'
    "<text:p>x</text:p></table:table-cell></table:table-row>"
)
DEEP = 20_000
SHEET = "<office:spreadsheet><table:table>%s</table:table></office:spreadsheet>"
LETTER = "<office:text><text:p>%s</text:p></office:text>"
HOSTILE = {
    "a million cells": SHEET % (CELL * 20),
    "nested paragraphs": LETTER % f"{'<text:p>' * DEEP}x{'</text:p>' * DEEP}",
    "nested spans": LETTER % f"{'<text:span>' * DEEP}{'</text:span>' * DEEP}",
    "no number": LETTER % '<text:s text:c="x"/>',
    "a long number": LETTER % f'<text:s text:c="{"9" * 5000}"/>',
    "no number in a cell": SHEET % '<table:table-row><table:table-cell office:value="x"/></table:table-row>',
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_what_programs_write_to_break_the_evaluator_is_no_document(body):
    assert office_document(packed(text_document(["x"]), content=content("", body), styles=STYLES)) is None


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_parts_whose_bytes_are_damaged_are_no_document(method):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name in ("content.xml", "styles.xml"):
            archive.writestr(name, STYLES * 50)
    data = file.getvalue()
    start = data.index(b"content.xml") + len("content.xml")
    for place in range(start, start + 60):
        spoiled = bytearray(data)
        spoiled[place] ^= 0xFF
        assert office_document(bytes(spoiled)) is None


def test_styles_that_inherit_from_thousands_are_followed_a_little():
    chain = "".join(
        f'<style:style style:name="s{n}" style:parent-style-name="s{n + 1}"/>' for n in range(10_000)
    )
    spans = '<text:span text:style-name="s0">x</text:span>' * 5_000
    body = f"<office:text><text:p>{spans}</text:p></office:text>"
    looks = f"<office:automatic-styles>{chain}</office:automatic-styles>"
    found = office_document(packed(text_document(["x"]), content=content(looks, body), styles=STYLES))
    assert found["paragraphs"][0]["text"] == "x" * 5_000


def test_entities_that_explode_are_refused():
    bomb = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    document = content("", "<office:text><text:p>&e11;</text:p></office:text>").removeprefix(HEAD)
    text = f'<!DOCTYPE x [<!ENTITY e0 "{"lol" * 10}">{bomb}]>{document}'
    assert office_document(packed(text_document(["x"]), content=text, styles=STYLES)) is None
