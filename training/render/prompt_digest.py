"""A short digest of a prompt's token ids: whether two prompts of one length are the same words."""

import hashlib
from collections.abc import Sequence

import numpy as np


def prompt_digest(token_ids: Sequence[int]) -> str:
    """16 hexadecimal digits; the same on every machine."""
    return hashlib.sha256(np.asarray(token_ids, dtype="<i4").tobytes()).hexdigest()[:16]
