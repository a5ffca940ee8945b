"""The tokens of a completion as the viewer shows them: text, probability, heat, alternatives."""

import json
import math
from operator import itemgetter
from typing import Any

from training.contracts.number_text import share_text

STOP = "⏹"
"""Of a token without text."""


def tokens(completion: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Sampled tokens with their probability; the text is the engine's, or the id when it gave none."""
    if not completion:
        return []
    ids = completion.get("token_ids") or []
    logprobs = completion.get("behaviour_logprobs") or []
    texts = completion.get("token_texts") or []
    others = completion.get("alternatives") or {}
    found = []
    for place, token_id in enumerate(ids):
        logprob = logprobs[place] if place < len(logprobs) else None
        found.append(
            {
                "place": place,
                "text": (texts[place] or STOP) if place < len(texts) else str(token_id),
                "id": token_id,
                "logprob": logprob,
                "probability": "" if logprob is None else probability(logprob),
                "heat": heat(logprob),
                "alternatives": _alternatives(others, place, token_id),
            }
        )
    return found


def _alternatives(recorded: dict[str, Any], place: int, sampled: int) -> str:
    """JSON of the likeliest tokens at one place: [text, probability, 1 for the sampled one]; "" = none."""
    ids, texts, logprobs = (
        lists[place] if place < len(lists := recorded.get(name) or ()) else ()
        for name in ("token_ids", "texts", "logprobs")
    )
    rows = [
        (text or STOP, probability(logprob), int(token == sampled))
        for token, text, logprob in zip(ids, texts, logprobs, strict=False)
    ]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")) if rows else ""


def probability(logprob: float) -> str:
    """In percent, of a logprob in nats."""
    return share_text(math.exp(min(logprob, 0.0)), 1)


def least_certain(found: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Of `tokens`, the one that the policy gave the lowest probability; None where none was recorded."""
    known = [token for token in found if token["logprob"] is not None]
    return min(known, key=itemgetter("logprob"), default=None)


def heat(logprob: float | None) -> int:
    """0 (certain) .. 5 (a surprise), by bands of probability: > 0.9, 0.5, 0.2, 0.05, 0.01."""
    if logprob is None:
        return 0
    limits = (-0.105, -0.693, -1.609, -2.996, -4.605)
    return sum(logprob < limit for limit in limits)
