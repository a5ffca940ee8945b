"""Begins a trajectory at the policy server with turns that were recorded before: a branch goes on from there.

The context of the next turn is made of the recorded tokens, as if they had been sampled in this session.
What was recorded under another model or prompt does not fit, and is refused instead of continued wrongly.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from training.contracts.context_fingerprint import differences
from training.contracts.policy_server import PREFIX, PrefixRequest, PrefixTaken, PrefixTurn
from training.contracts.types import Completion
from training.render.history_window import SeenTurn, keeps_image
from training.render.prompt_digest import prompt_digest
from training.sampler.sessions import PolicyService, ServiceError, Session, image_size, json_answer

MAX_PREFIX_BYTES = 64 * 1024 * 1024
"""Of one part of the request; completions carry every token's text and logprob."""
MAX_TURNS = 1000


async def post_prefix(
    request: Request, service: PolicyService, session_name: Callable[[str], str]
) -> Response:
    """The route's handler; `session_name`: of the caller's trajectories."""
    async with request.form(max_files=MAX_TURNS, max_part_size=MAX_PREFIX_BYTES) as form:
        part = form.get("request")
        if part is None:
            raise ServiceError(400, "bad_request", "request: the form field is missing")
        text = (await part.read()).decode() if isinstance(part, UploadFile) else part
        prefix = PREFIX.read_request(request.path_params, {}, text.encode())
        prefix = prefix.model_copy(update={"trajectory_id": session_name(prefix.trajectory_id)})
        pictures = {
            name.removeprefix("screenshot-"): await file.read()
            for name, file in form.items()
            if isinstance(file, UploadFile) and name.startswith("screenshot-")
        }
    screenshots = {turn: pictures[str(turn)] for turn in range(len(prefix.turns)) if str(turn) in pictures}
    await begin(service, prefix, screenshots)
    return json_answer(PREFIX, PrefixTaken(next_turn=len(prefix.turns)))


async def begin(service: PolicyService, prefix: PrefixRequest, screenshots: Mapping[int, bytes]) -> None:
    """Fill a new session with recorded turns; repeating changes nothing.

    screenshots: turn -> PNG. Raises ServiceError (409) when the trajectory went another way already, or the
    record does not fit this model and prompt.
    """
    session = service.session(prefix.trajectory_id)
    completions = [turn.completion for turn in prefix.turns]
    async with session.lock:
        if session.completions:
            if session.completions[: len(completions)] != completions:
                raise ServiceError(409, "wrong_turn", "this trajectory has turns of its own already")
            return
        turns = [_seen(turn, screenshots.get(place)) for place, turn in enumerate(prefix.turns)]
        _check_fit(service, turns, completions)
        await _take_pictures(service, session, len(turns), screenshots)
        session.turns, session.completions = turns, completions


def _seen(turn: PrefixTurn, png: bytes | None) -> SeenTurn:
    size = image_size(png) if png is not None else None
    return SeenTurn(text=turn.text, image_size=size, completion=tuple(turn.completion.token_ids))


def _check_fit(service: PolicyService, turns: list[SeenTurn], completions: list[Completion]) -> None:
    """Each completion must stand where it stood when it was sampled, and mean what it meant."""
    own = service.renderer.fingerprint
    for place, completion in enumerate(completions):
        if completion.fingerprint and (changed := differences(completion.fingerprint, own)):
            message = f"turn {place} was sampled with {', '.join(changed)}"
            raise ServiceError(409, "prefix_mismatch", message)
        here = replace(turns[place], completion=())
        before = service.renderer.context([*turns[:place], here]).token_ids
        length, seen = len(before), completion.prompt_digest
        if not completion.token_ids or length != completion.num_prompt_tokens:
            message = (
                f"turn {place} was sampled after {completion.num_prompt_tokens} tokens, with this model and "
                f"prompt it would stand after {length}"
            )
            raise ServiceError(409, "prefix_mismatch", message)
        if seen and seen != prompt_digest(before):
            message = f"turn {place} was sampled after other words than this model and prompt make of it"
            raise ServiceError(409, "prefix_mismatch", message)


async def _take_pictures(
    service: PolicyService, session: Session, num_turns: int, screenshots: Mapping[int, bytes]
) -> None:
    """Prepare what the next context may show; the window of a shortened history never moves back."""
    for turn, png in screenshots.items():
        if keeps_image(turn, num_turns, service.renderer.prompt):
            session.pixels[turn] = await service.engine.prepare(png)
