"""Logprobs of given tokens by SGLang servers, as the trainer computes them."""

import asyncio
import math
from collections.abc import Sequence

from training.sampler.engine import EngineError, EngineSequence
from training.sampler.sglang import server_endpoints
from training.sampler.sglang.generate_requests import image_entries
from training.sampler.sglang.http_client import SglangError
from training.sampler.sglang.server_pool import ServerSlot

SAME_WEIGHTS = 0.1
"""Servers whose scores differ by more than this on average do not run the same weights. Nats."""


async def score_by_all(
    slots: list[ServerSlot], sequence: EngineSequence, start: int, banned_ids: Sequence[int]
) -> list[float]:
    """Logprobs at temperature 1 of the tokens from `start` on, nats. [tokens from start]

    Nothing may be generated meanwhile. Raises EngineError when a server fails, or the servers do not agree.
    """
    scores = await asyncio.gather(*(_score(slot, sequence, start, banned_ids) for slot in slots))
    for number, other in enumerate(scores[1:], start=2):
        pairs = list(zip(scores[0], other, strict=True))
        apart = sum(abs(a - b) for a, b in pairs) / len(pairs)
        if apart > SAME_WEIGHTS:
            raise EngineError(f"SGLang servers 1 and {number} do not run the same weights: {apart:.3f}")
    return scores[0]


async def _score(
    slot: ServerSlot, sequence: EngineSequence, start: int, banned_ids: Sequence[int]
) -> list[float]:
    """SGLang scores a prompt without the bias, so the mass of the banned ids is taken out here."""
    await slot.ready.wait()
    call = server_endpoints.generate(
        sequence.token_ids,
        {"temperature": 1.0, "max_new_tokens": 1},
        images=image_entries(sequence),
        # The first reported position has no logprob, so ask from the one before.
        logprob_start=start - 1,
        chosen_ids=banned_ids,
        adapter=slot.weights.adapter_name,
    )
    try:
        answer = await slot.client.run(call)
    except SglangError as error:
        raise EngineError(f"the canary failed: {error}") from error
    count = len(sequence.token_ids) - start
    # Of a model without images no id is banned, and the server reports none.
    chosen = answer.input_chosen[-count:] if banned_ids else [{}] * count
    pairs = zip(answer.input_logprobs[-count:], chosen, strict=True)
    return [without_banned(logprob, list(banned.values())) for logprob, banned in pairs]


def without_banned(logprob: float | None, banned: list[float]) -> float:
    """The logprob once the banned ids have no probability. Raises ValueError without a logprob."""
    if logprob is None:
        raise ValueError("the server reported no logprob for a token of the prompt")
    return logprob - math.log1p(-min(math.fsum(math.exp(value) for value in banned), 1 - 1e-12))
