"""Pictures and tables that others made: what is opened, and what decoding them may take."""

from __future__ import annotations

import io
import resource
import zlib
from struct import pack

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from training.untrusted.parquet import BadTable, TableTooLarge, read_rows
from training.untrusted.pictures import NotAPicture, decode_picture, open_picture

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n(x) print\n%%EOF\n"


def png_that_says(width: int, height: int) -> bytes:
    """A PNG of a few bytes with this size in its header."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return pack(">I", len(data)) + name + data + pack(">I", zlib.crc32(name + data))

    header = pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"\0" * min(width * height, 1 << 22))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def written(name: str, side: int = 8) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (side, side), "red").save(out, name)
    return out.getvalue()


@pytest.mark.parametrize("name", ["PNG", "JPEG", "WEBP"])
def test_formats_of_screenshots_are_decoded(name):
    assert decode_picture(written(name)).size == (8, 8)


@pytest.mark.parametrize(
    "data",
    [
        EPS,
        written("TIFF"),
        written("GIF"),
        written("PPM"),
        written("BMP"),
        b"",
        b"\x89PNG\r\n\x1a\n",
        b"x" * 99,
    ],
)
def test_no_other_format_is_opened(data):
    with pytest.raises(NotAPicture, match="not an image"):
        open_picture(data)


@pytest.mark.parametrize("size", [(8193, 1), (8192, 8192), (65535, 65535), (2**31 - 1, 1)])
def test_a_bomb_is_refused_before_it_is_decoded(size):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(NotAPicture):
        decode_picture(png_that_says(*size))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000, "KiB"


def test_one_that_is_cut_off_is_no_picture():
    with pytest.raises(NotAPicture, match="not a whole image"):
        decode_picture(png_that_says(4000, 4000)[:-30])
    assert open_picture(written("PNG")[:-30]).size == (8, 8), "its header is there"


def table(path, **columns):
    pq.write_table(pa.table(columns), path, compression="zstd")
    return path


def test_rows_of_text_columns_are_read(tmp_path):
    file = table(tmp_path / "t.parquet", task_config=["{}", "{}"], other=[1, 2])
    assert read_rows(file, ("task_config", "task_id"), max_bytes=1 << 20) == [{"task_config": "{}"}] * 2


def test_a_small_file_that_decodes_to_gigabytes_is_refused_outside_of_this_process(tmp_path):
    file = table(tmp_path / "t.parquet", task_config=["x" * (64 << 20)] * 24)
    assert file.stat().st_size < 1 << 20
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TableTooLarge, match="more than 128 MiB"):
        read_rows(file, ("task_config",), max_bytes=128 << 20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000, "KiB"


def test_what_is_no_table_or_no_text_is_told(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and more PAR1")
    with pytest.raises(BadTable):
        read_rows(tmp_path / "x.parquet", ("task_config",), max_bytes=1 << 20)
    with pytest.raises(BadTable, match="column task_config must hold text"):
        read_rows(table(tmp_path / "n.parquet", task_config=[1]), ("task_config",), max_bytes=1 << 20)
