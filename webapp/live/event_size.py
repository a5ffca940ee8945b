"""How large an event may be, and how its payload is cut to that."""

import json
import logging

logger = logging.getLogger(__name__)

MAX_EVENT_BYTES = 1024
"""Of an event as JSON. Events tell pages what to fetch; what they carry beyond ids is a courtesy."""
MIN_TEXT_BYTES = 160
"""A text that would keep fewer is left out."""
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def fitting(stream: str, type: str, payload: dict[str, object]) -> dict[str, object]:
    """`payload` cut so that its event takes at most MAX_EVENT_BYTES: long texts first, then other values."""
    envelope = {"stream": stream, "seq": 2**63 - 1, "type": type, "payload": 0}
    limit = MAX_EVENT_BYTES - _num_bytes(envelope)
    fitted = dict(payload)
    while (excess := _num_bytes(fitted) - limit) > 0:
        name = max(fitted, key=lambda name: _num_bytes(fitted[name]))
        value, size = fitted[name], _num_bytes(fitted[name])
        if isinstance(value, str) and size > MIN_TEXT_BYTES:
            fitted[name] = _shortened(value, max(size - excess, MIN_TEXT_BYTES))
        else:
            del fitted[name]
            logger.error("%s on %s: %s does not fit into an event, publish an id instead", type, stream, name)
    return fitted


def _num_bytes(value: object) -> int:
    """Of JSON in ASCII, as browsers get it: a CJK character takes 6, one beyond the BMP 12."""
    return len(json.dumps(value))


def _shortened(text: str, size: int) -> str:
    """The beginning of `text` and an ellipsis in `size` bytes of JSON."""
    room = size - _num_bytes(ELLIPSIS)
    kept = 0
    for character in text:
        room -= _num_bytes(character) - 2
        if room < 0:
            break
        kept += 1
    return text[:kept] + ELLIPSIS
