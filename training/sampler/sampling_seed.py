"""Seeds of what generates: no two servers, starts or attempts of an experiment generate the same again."""

import hashlib

LARGEST = 2**31 - 1
"""What SGLang takes."""


def sampling_seed(seed: int, attempt: int, server: int = 0, start: int = 0) -> int:
    """Of the `start`-th start of a server in an attempt at an experiment with this `seed`.

    A digest, because sums would meet: seed 1 in attempt 1 is not seed 2 in attempt 0.
    """
    words = f"{seed}/{attempt}/{server}/{start}".encode()
    return int.from_bytes(hashlib.sha256(words).digest()[:8], "big") % LARGEST
