"""Archives and documents that were made to break their reader: each is refused by its name."""

import json
from contextlib import suppress
from io import BytesIO
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testing.first_desk_screens import menu_screen
from testing.hostile_values import leaves
from webapp.lib.request_values import BadValue
from webapp.replay.formats.atif import archive as archive_module
from webapp.replay.formats.atif.archive import UNREADABLE, documents
from webapp.replay.formats.atif.read import line_of_document
from webapp.replay.formats.conversation import ReadProblem
from webapp.replay.formats.messages import read_action

NAMES = st.sampled_from(
    ["schema_version", "steps", "extra", "deskhand", "source", "message", "observation", "results", "content",
     "tool_calls", "arguments", "function_name", "type", "text", "image", "path", "final_metrics", "reward",
     "agent", "user", "system", "is_copied_context", "step_loss_mask", "action", "coordinate", "x", "y"]
)  # fmt: skip
values = st.recursive(
    NAMES | leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=8,
)
steps = st.lists(st.dictionaries(NAMES, values, max_size=6), max_size=3)


@settings(max_examples=150)
@given(st.dictionaries(NAMES, values, max_size=6), steps)
def test_a_document_is_a_line_or_a_problem(document, said):
    document = document | {"steps": said} if said else document
    with suppress(ReadProblem, BadValue):
        assert "messages" in line_of_document(document, lambda path: b"picture")


def packed(method: int = ZIP_DEFLATED, *, path: str = "images/a.png", times: int = 1) -> bytes:
    shown = {"type": "image", "source": {"path": path}}
    said = [
        {"source": "user", "message": [{"type": "text", "text": "Open it."}, *[shown] * times]},
        {"source": "agent", "message": "pyautogui.click(1, 2)"},
    ]
    document = {"schema_version": "ATIF-v1.7", "session_id": "s", "steps": said}
    out = BytesIO()
    with ZipFile(out, "w", method) as archive:
        archive.writestr("one/trajectory.json", json.dumps(document))
        archive.writestr("one/images/a.png", menu_screen(0)[:200])
    return out.getvalue()


def read_all(body: bytes) -> int:
    """Of how many documents there is a line; as the import reads them."""
    num = 0
    try:
        with ZipFile(BytesIO(body)) as archive:
            for document in documents(archive):
                try:
                    document.line()
                    num += 1
                except (ReadProblem, BadValue):
                    continue
    except UNREADABLE:
        return 0
    return num


def test_every_damaged_byte_is_a_problem_of_its_file():
    body = packed()
    assert read_all(body) == 1
    for place in range(len(body)):
        for value in (0x00, 0xFF, body[place] ^ 0x08):
            read_all(body[:place] + bytes([value]) + body[place + 1 :])
        read_all(body[:place])


@pytest.mark.parametrize("method", [ZIP_BZIP2, ZIP_LZMA])
def test_what_may_unpack_to_anything_is_not_unpacked(method):
    with ZipFile(BytesIO(packed(method))) as archive:
        (document,) = documents(archive)
        with pytest.raises(ReadProblem, match="another method than deflate"):
            document.line()


@pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/passwd", "images/../../b.png", "", "a\0", "."])
def test_a_picture_comes_from_the_archive_alone(path):
    with ZipFile(BytesIO(packed(path=path))) as archive:
        (document,) = documents(archive)
        with pytest.raises((ReadProblem, BadValue)):
            document.line()


@pytest.mark.parametrize("limit", ["MAX_FILE_BYTES", "MAX_DOCUMENT_BYTES"])
def test_a_small_archive_that_unpacks_to_much_is_not_unpacked(limit, monkeypatch):
    """With the limit a document is read as often as it names its picture; then it is refused."""
    body = packed(times=100)
    assert read_all(body) == 1
    monkeypatch.setattr(archive_module, limit, 4 << 10)
    assert read_all(body) == 0


@pytest.mark.parametrize(
    "piece", ["<tool_call>", "<tool_call>\n", "\n<action>", "</action>", "<answer></action>"]
)
def test_tags_that_are_never_closed_take_no_square_of_the_length(piece):
    with pytest.raises((ReadProblem, BadValue)):
        read_action(piece * (1_000_000 // len(piece)), "messages[0]")
