"""The engine's half of the eye test: what it reads, and where it clicks."""

import asyncio
import base64
from dataclasses import asdict

from training.actions.parse_completion import parse_completion
from training.contracts.config import SamplingConfig
from training.contracts.eye_test import (
    NUM_TRIED,
    EngineFacts,
    EyeTestAnswer,
    EyeTestRequest,
    Glimpse,
)
from training.contracts.types import ActionKind, ParsedCompletion
from training.contracts.weight_requests import Canary
from training.eyes.eye_chart import ROOM, View, answer_ids, asked, targets, views
from training.eyes.screens import picture
from training.render.renderer import Renderer
from training.sampler.engine import Engine, EngineSequence, SamplingSettings

MAX_AT_ONCE = 32
CLICKS = (ActionKind.CLICK, ActionKind.DOUBLE_CLICK)


async def look(
    engine: Engine, renderer: Renderer, limits: SamplingConfig, request: EyeTestRequest
) -> EyeTestAnswer:
    """What POST /eyes answers."""
    found = views(renderer, is_whole=request.is_whole, max_context_tokens=limits.max_context_tokens)
    return EyeTestAnswer(
        facts=EngineFacts(
            **asdict(await engine.build()),
            fingerprint=renderer.fingerprint,
            max_completion_tokens=limits.max_completion_tokens,
            max_context_tokens=limits.max_context_tokens,
        ),
        glimpses=tuple([await _score(engine, renderer, view) for view in found]),
        targets=tuple(await _click(engine, renderer, limits) if request.is_whole else ()),
    )


async def _score(engine: Engine, renderer: Renderer, view: View) -> Glimpse:
    sequence = await _sequence(engine, renderer, view)
    start = len(sequence.token_ids)
    sequence.token_ids += answer_ids(renderer, view)
    logprobs = await engine.score(sequence, start)
    return Glimpse(name=view.name, canary=_canary(engine, view, sequence.token_ids, logprobs))


async def _click(engine: Engine, renderer: Renderer, limits: SamplingConfig) -> list[Glimpse]:
    """Greedy answers. Weights are real when at least half of the first answers are clicks; else none."""
    sampling = SamplingSettings(temperature=0.0, max_tokens=min(ROOM, limits.max_completion_tokens))
    places = asyncio.Semaphore(MAX_AT_ONCE)

    async def answer(view: View) -> tuple[Glimpse, ParsedCompletion]:
        async with places:
            sequence = await _sequence(engine, renderer, view)
            sampled = await engine.generate(sequence, sampling)
        size, image = view.screen.size, renderer.resized_size(view.screen.size)
        said = parse_completion(
            renderer.decode(sampled.token_ids),
            dialect=renderer.prompt.dialect,
            space=renderer.prompt.coordinate_space,
            screen=size,
            image=image,
            most=renderer.prompt.actions_per_turn,
        )
        canary = _canary(engine, view, sequence.token_ids, sampled.logprobs)
        return Glimpse(name=view.name, canary=canary, is_hit=_is_hit(view, said)), said

    all_views = targets(renderer)
    first = await asyncio.gather(*map(answer, all_views[:NUM_TRIED]))
    if 2 * sum(_point(said) is not None for _, said in first) < len(first):
        return []
    rest = await asyncio.gather(*map(answer, all_views[NUM_TRIED:]))
    return [glimpse for glimpse, _ in (*first, *rest)]


def _point(said: ParsedCompletion) -> tuple[int, int] | None:
    clicks = [one for one in said.actions if one.kind in CLICKS and one.x is not None and one.y is not None]
    return (clicks[0].x or 0, clicks[0].y or 0) if clicks else None


def _is_hit(view: View, said: ParsedCompletion) -> bool:
    point = _point(said)
    return point is not None and view.screen.is_hit(*point)


async def _sequence(engine: Engine, renderer: Renderer, view: View) -> EngineSequence:
    rendered = asked(renderer, view)
    return EngineSequence(
        sequence_id=f"eyes: {view.name}",
        token_ids=list(rendered.token_ids),
        pixels=[await engine.prepare(picture(view.screen)) for _ in rendered.images],
        grids=rendered.grids,
    )


def _canary(engine: Engine, view: View, token_ids: list[int], logprobs: list[float]) -> Canary:
    start = len(token_ids) - len(logprobs)
    return Canary(
        token_ids=tuple(token_ids),
        loss_mask=(*[0] * start, *[1] * len(logprobs)),
        logprobs=(*[0.0] * start, *logprobs),
        images=() if view.num_lines else (base64.b64encode(picture(view.screen)).decode(),),
        policy_version=engine.policy_version,
    )
