"""What the policy server does behind its routes: one session per trajectory.

Only the event loop touches sessions and the tokenizer (it is not thread-safe). A turn is recorded when its
completion exists: a failed or repeated request changes nothing.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.responses import Response

from training.contracts.config import PromptConfig, SamplingConfig
from training.contracts.eye_test import EyeTestAnswer, EyeTestRequest
from training.contracts.policy_server import TurnRequest
from training.contracts.route_types import Answered, Route
from training.contracts.turn_trace import TurnPart, rounded
from training.contracts.types import Alternatives, Completion
from training.contracts.weight_requests import Canary, WeightsAnswer, WeightsRequest
from training.render.history_window import Context, SeenTurn, keeps_image
from training.render.prompt_digest import prompt_digest
from training.render.renderer import Renderer
from training.render.token_budgets import over_budget
from training.sampler.canary import engine_canary
from training.sampler.engine import (
    Engine,
    EngineError,
    EngineSequence,
    SampledCompletion,
    SamplingSettings,
)
from training.sampler.eye_test import look
from training.sampler.stopwatch import Stopwatch
from training.sampler.weights.receiver import Receiver, WeightSyncHandler
from training.untrusted.pictures import NotAPicture, open_picture

MAX_SESSIONS = 4096
"""Beyond this number the oldest sessions of the host with most of them are dropped."""


class ServiceError(Exception):
    """Raised when a request cannot be served; becomes `{error: {code, message}}`."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def json_answer(route: Route[Any, Answered], answer: Answered) -> Response:
    """The answer of a route over HTTP."""
    return Response(route.write_answer(answer), media_type="application/json")


@contextmanager
def engine_errors() -> Iterator[None]:
    """An engine that cannot go on becomes an answer with status 500."""
    try:
        yield
    except EngineError as error:
        raise ServiceError(500, "engine", str(error)) from error


@dataclass(kw_only=True, slots=True)
class Session:
    sequence: EngineSequence
    completions: list[Completion] = field(default_factory=list)
    """Of the turns so far, for repeated requests."""
    turns: list[SeenTurn] = field(default_factory=list)
    """What the policy saw and wrote so far."""
    pixels: dict[int, Any] = field(default_factory=dict)
    """Turn -> its screenshot as the engine prepared it, while a later context may show it."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    running: EngineSequence | None = None
    """What is being generated."""

    def forget_pixels(self, prompt: PromptConfig) -> None:
        """Drop screenshots that no later turn will see: the window never moves back."""
        following = len(self.turns)
        self.pixels = {t: rows for t, rows in self.pixels.items() if keeps_image(t, following, prompt)}


class PolicyService:
    def __init__(
        self, engine: Engine, renderer: Renderer, *, limits: SamplingConfig, receiver: Receiver | None = None
    ) -> None:
        """`receiver`: how the engine takes weights from memory; None = from folders only."""
        self.engine = engine
        self.weight_sync = WeightSyncHandler(engine, receiver)
        self.working = Stopwatch()
        self.renderer = renderer
        self.limits = limits
        self.sessions: dict[str, Session] = {}

    async def close(self) -> None:
        """End the engine."""
        await self.engine.close()

    async def complete(self, request: TurnRequest, png: bytes | None) -> Completion:
        """The completion of one turn, generated now, or the recorded one for a repeated request."""
        session = self.session(request.trajectory_id)
        with self.working.running():
            return await self._complete(session, request, png)

    async def _complete(self, session: Session, request: TurnRequest, png: bytes | None) -> Completion:
        async with session.lock:
            if request.turn_index < len(session.completions):
                return session.completions[request.turn_index]
            if request.turn_index > len(session.completions):
                expected = len(session.completions)
                raise ServiceError(
                    409, "wrong_turn", f"turn_index is {request.turn_index}, the next turn is {expected}"
                )
            completion = await self._next_turn(session, request, png)
            session.completions.append(completion)
            return completion

    def waited_s(self, trajectory_id: str) -> float:
        """What the trajectory's running turn has waited for the engine to be there."""
        session = self.sessions.get(trajectory_id)
        return session.running.waited_s() if session is not None and session.running is not None else 0.0

    def forget(self, trajectory_id: str) -> None:
        """Drop a trajectory; unknown ones are forgotten already."""
        self.sessions.pop(trajectory_id, None)

    async def sync(self, request: WeightsRequest) -> WeightsAnswer:
        """One step of a weight sync. Raises ServiceError (400) when the engine refuses it."""
        try:
            answer = await self.weight_sync.handle(request)
        except (OSError, ValueError) as error:
            raise ServiceError(400, "bad_weights", str(error)) from error
        return answer.model_copy(update={"idle_s": self.working.idle_s})

    async def canary(self) -> Canary:
        """The engine's logprobs of the canary sequence."""
        with engine_errors():
            return await engine_canary(self.engine, self.renderer)

    async def eyes(self, request: EyeTestRequest) -> EyeTestAnswer:
        """What the engine reads in the eye test."""
        with engine_errors():
            return await look(self.engine, self.renderer, self.limits, request)

    async def sleep(self) -> None:
        """The engine gives its memory to the trainer; turns wait until `wake`."""
        with engine_errors():
            await self.engine.sleep()

    async def wake(self) -> None:
        """Undo `sleep`."""
        with engine_errors():
            await self.engine.wake()

    def session(self, trajectory_id: str) -> Session:
        """The trajectory's session, a new one when it has none."""
        if trajectory_id not in self.sessions:
            while len(self.sessions) >= MAX_SESSIONS:
                del self.sessions[self._oldest_of_most()]
            self.sessions[trajectory_id] = Session(sequence=EngineSequence(sequence_id=trajectory_id))
        return self.sessions[trajectory_id]

    def _oldest_of_most(self) -> str:
        """The oldest session of the host that has most of them: no host drops those of others."""
        openers = [name.rpartition("/")[0] for name in self.sessions]
        most, _ = Counter(openers).most_common(1)[0]
        return next(name for name, opener in zip(self.sessions, openers, strict=True) if opener == most)

    async def _next_turn(self, session: Session, request: TurnRequest, png: bytes | None) -> Completion:
        """Build the turn's context and generate; on any failure the session is as before."""
        before, renderer, started = session.sequence, self.renderer, time.perf_counter()
        size = image_size(png) if png is not None else None
        turn = SeenTurn(text=request.text, image_size=size)
        context = renderer.context([*session.turns, turn])
        self._check_room(context, request.max_tokens)
        if png is not None:
            session.pixels[request.turn_index] = await self._prepared(png)
        keeps = context.token_ids[: len(before.token_ids)] == before.token_ids
        # A sequence of its own: whatever fails, or goes on in the engine after a cancel, the session's stays.
        sequence = EngineSequence(
            sequence_id=before.sequence_id,
            token_ids=context.token_ids,
            pixels=[session.pixels[place] for place in context.images],
            grids=context.grids,
            cache=before.cache if keeps else None,
        )
        session.running = sequence
        prepare_ms = 1000 * (time.perf_counter() - started)
        try:
            sampling = SamplingSettings(
                temperature=request.temperature,
                max_tokens=request.max_tokens,
                top_logprobs=self.limits.top_logprobs,
            )
            sampled = await self._sample(sequence, sampling)
        finally:
            session.running = None
        if not all(map(math.isfinite, sampled.logprobs)):
            raise ServiceError(500, "not_finite", "the engine's logprobs are not finite: look at its weights")
        session.sequence = sequence
        session.turns.append(replace(turn, completion=tuple(sampled.token_ids)))
        session.forget_pixels(renderer.prompt)
        waited_s = sequence.waited_s()
        own = {TurnPart.PREPARE: prepare_ms, TurnPart.PAUSE: 1000 * waited_s}
        return Completion(
            text=renderer.decode(sampled.token_ids),
            token_ids=tuple(sampled.token_ids),
            token_texts=tuple(renderer.decode([token]) for token in sampled.token_ids),
            behaviour_logprobs=tuple(sampled.logprobs),
            alternatives=alternatives_of(sampled, renderer),
            policy_version=sampled.policy_version,
            policy_versions=tuple(sampled.policy_versions) if len(set(sampled.policy_versions)) > 1 else (),
            finish_reason=sampled.finish_reason,
            num_prompt_tokens=len(sequence.token_ids) - len(sampled.token_ids),
            prompt_digest=prompt_digest(sequence.token_ids[: -len(sampled.token_ids) or None]),
            fingerprint=renderer.fingerprint,
            waited_s=round(waited_s, 3),
            spent_ms=rounded(own | sampled.spent_ms),
        )

    async def _prepared(self, png: bytes) -> Any:
        """The screenshot for the engine. Raises ServiceError (400) for one that is cut off."""
        try:
            return await self.engine.prepare(png)
        except (OSError, SyntaxError, ValueError) as error:
            raise ServiceError(400, "bad_screenshot", f"screenshot: {error}") from error

    def _check_room(self, context: Context, max_tokens: int) -> None:
        """Raise ServiceError (413) when the context and a completion exceed one of the budgets."""
        images = context.token_ids.count(self.renderer.image_pad_id)
        text = len(context.token_ids) - images + max_tokens
        if over := over_budget(images, text, self.limits):
            raise ServiceError(413, "context_full", f"with {max_tokens} new ones, {over}")

    async def _sample(self, sequence: EngineSequence, sampling: SamplingSettings) -> SampledCompletion:
        # Shielded: the engine goes on when the client disconnects, and the repeated request starts anew.
        generation = asyncio.ensure_future(self.engine.generate(sequence, sampling))
        with engine_errors():
            return await asyncio.shield(generation)


def alternatives_of(sampled: SampledCompletion, renderer: Renderer) -> Alternatives | None:
    """The likeliest tokens as they are recorded; None where the engine reported none."""
    if not sampled.top:
        return None
    # A banned token can have no finite logprob, and JSON has no word for that.
    top = [[(token, value) for token, value in place if math.isfinite(value)] for place in sampled.top]
    texts = {token: renderer.decode([token]) for token in {token for place in top for token, _ in place}}
    return Alternatives(
        token_ids=tuple(tuple(token for token, _ in place) for place in top),
        texts=tuple(tuple(texts[token] for token, _ in place) for place in top),
        logprobs=tuple(tuple(round(value, 4) for _, value in place) for place in top),
    )


def image_size(png: bytes) -> tuple[int, int]:
    """(width, height) in pixels. Raises ServiceError (400) for anything but an image."""
    try:
        with open_picture(png) as image:
            return image.size
    except NotAPicture as error:
        raise ServiceError(400, "bad_screenshot", f"screenshot: {error}") from error
