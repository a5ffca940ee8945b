"""Numbers of bytes as people read them, and as settings write them."""

from pydantic import ByteSize, TypeAdapter, ValidationError

_BYTES = TypeAdapter(ByteSize)


def size_text(num_bytes: float) -> str:
    """Bytes as "812 B", "3.4 MB" or "1.2 GB" (powers of 1000)."""
    value = float(num_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def read_size(text: str) -> int:
    """Bytes of "500MB", "2 GiB" or "1000". Raises ValueError that says what is allowed."""
    try:
        return int(_BYTES.validate_python(text))
    except ValidationError as exc:
        raise ValueError(f"{text!r} is no size: write 500MB, 2GB or a number of bytes") from exc
