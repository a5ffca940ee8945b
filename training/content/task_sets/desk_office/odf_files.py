"""Small OpenDocument files (1.3), byte for byte the same from the same values."""

import base64
import io
import zipfile
from collections.abc import Sequence
from xml.sax.saxutils import escape

SPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{urn}:1.0"'
    for name, urn in (
        ("office", "office"),
        ("text", "text"),
        ("table", "table"),
        ("draw", "drawing"),
        ("style", "style"),
        ("presentation", "presentation"),
        ("fo", "xsl-fo-compatible"),
        ("svg", "svg-compatible"),
    )
)
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
Cell = str | int | float


def text_document(paragraphs: Sequence[str]) -> str:
    """An .odt with plain paragraphs, as base64."""
    body = "".join(f"<text:p>{escape(text)}</text:p>" for text in paragraphs)
    return _packed("text", f"<office:text>{body}</office:text>")


def spreadsheet(rows: Sequence[Sequence[Cell]], sheet: str = "Sheet1") -> str:
    """An .ods with one sheet, as base64."""
    body = "".join(f"<table:table-row>{''.join(map(_cell, row))}</table:table-row>" for row in rows)
    table = f'<table:table table:name="{escape(sheet)}">{body}</table:table>'
    return _packed("spreadsheet", f"<office:spreadsheet>{table}</office:spreadsheet>")


def presentation(slides: Sequence[tuple[str, str]]) -> str:
    """An .odp of (title, text) slides, as base64."""
    pages = "".join(
        f'<draw:page draw:name="page{number}" draw:master-page-name="Default">'
        f"{_frame('title', 1, 3, title)}{_frame('subtitle', 5, 8, text)}</draw:page>"
        for number, (title, text) in enumerate(slides, 1)
    )
    return _packed("presentation", f"<office:presentation>{pages}</office:presentation>", STYLES, LOOKS)


LOOKS = (
    '<office:automatic-styles><style:style style:name="pr1" style:family="presentation">'
    '<style:graphic-properties draw:fill="none" draw:stroke="none"/>'
    '<style:text-properties fo:font-size="32pt"/></style:style></office:automatic-styles>'
)
STYLES = (
    f'{HEAD}<office:document-styles {SPACES} office:version="1.3"><office:automatic-styles>'
    '<style:page-layout style:name="PM1"><style:page-layout-properties fo:page-width="28cm" '
    'fo:page-height="15.75cm" style:print-orientation="landscape"/></style:page-layout>'
    "</office:automatic-styles><office:master-styles>"
    '<style:master-page style:name="Default" style:page-layout-name="PM1"/>'
    "</office:master-styles></office:document-styles>"
)


def _frame(role: str, top_cm: int, height_cm: int, text: str) -> str:
    place = f'svg:x="2cm" svg:y="{top_cm}cm" svg:width="24cm" svg:height="{height_cm}cm"'
    return (
        f'<draw:frame presentation:style-name="pr1" presentation:class="{role}" {place}>'
        f"<draw:text-box><text:p>{escape(text)}</text:p></draw:text-box></draw:frame>"
    )


def _cell(value: Cell) -> str:
    if isinstance(value, str):
        return (
            '<table:table-cell office:value-type="string">'
            f"<text:p>{escape(value)}</text:p></table:table-cell>"
        )
    return (
        f'<table:table-cell office:value-type="float" office:value="{value}">'
        f"<text:p>{value}</text:p></table:table-cell>"
    )


def _packed(what: str, body: str, styles: str = "", looks: str = "") -> str:
    media_type = f"application/vnd.oasis.opendocument.{what}"
    content = (
        f'{HEAD}<office:document-content {SPACES} office:version="1.3">{looks}'
        f"<office:body>{body}</office:body></office:document-content>"
    )
    files = {"content.xml": content} | ({"styles.xml": styles} if styles else {})
    listed = "".join(
        f'<manifest:file-entry manifest:full-path="{name}" manifest:media-type="{kind}"/>'
        for name, kind in (("/", media_type), *((name, "text/xml") for name in files))
    )
    manifest = (
        f'{HEAD}<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0" '
        f'manifest:version="1.3">{listed}</manifest:manifest>'
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:  # stored: versions of zlib pack differently
        for name, text in {"mimetype": media_type, **files, "META-INF/manifest.xml": manifest}.items():
            archive.writestr(zipfile.ZipInfo(name, date_time=(2020, 1, 1, 0, 0, 0)), text)
    return base64.b64encode(file.getvalue()).decode()
