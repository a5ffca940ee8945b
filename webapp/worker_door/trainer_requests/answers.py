"""The rows of the contract by which a coordinator passes a trainer's requests on."""

from dataclasses import dataclass

from webapp.lib.remote_calls import OwnAttempt, gpu_host
from webapp.worker_door.attempts import attempt_of
from webapp.worker_door.trainer_requests import reports, rollouts
from webapp.worker_door.trainer_requests.contract import Handler, RequestRefused, TrainerCall

HANDLERS = (*rollouts.HANDLERS, *reports.HANDLERS)
_by_name = {str(handler.route): handler for handler in HANDLERS}


@dataclass(frozen=True, slots=True)
class TrainerAnswer:
    status: int
    body: str = ""
    """JSON, of status 200."""
    code: str = ""
    message: str = ""
    """What was wrong, of any other."""


@gpu_host.patient_request
def answer_trainer(attempt_id: OwnAttempt, route: str, request: str, key: str) -> TrainerAnswer:
    """`request`: the JSON of what the route asks, which its coordinator has read. `key` names it when it is
    sent again."""
    try:
        handler = _by_name[route]
        answer = handler.route.write_answer(_answer(handler, attempt_id, request, key))
    except RequestRefused as refused:
        return TrainerAnswer(refused.status, code=refused.code, message=str(refused))
    return TrainerAnswer(200, answer.decode())


@gpu_host.report
def take_report(attempt_id: OwnAttempt, route: str, request: str) -> None:
    """Raises RequestRefused, also of an attempt that has ended: what the next one tells counts."""
    _answer(_by_name[route], attempt_id, request, "")


def _answer(handler: Handler, attempt_id: int, request: str, key: str) -> object:
    attempt = attempt_of(attempt_id)
    if attempt.ended_at is not None:
        raise RequestRefused(f"attempt {attempt.number} has ended", 409, code="ended")
    return handler.answer(TrainerCall(attempt, key), handler.route.kept_request(request))
