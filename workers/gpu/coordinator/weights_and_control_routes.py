"""What a coordinator answers on its own host: weight syncs, the engine's sleep, pause, cancel, room on the
disk, frames."""

from pathlib import Path

from training.contracts import coordinator as routes
from training.contracts.eye_test import EyeTestAnswer, EyeTestRequest
from training.contracts.route_types import LOADING, Nothing
from training.contracts.types import Control
from training.contracts.weight_requests import WeightsRequest
from webapp.lib.disk_room import shortage_of_checkpoint
from webapp.lib.outage_retries import patiently
from webapp.worker_door.attempts import ExperimentStatus, beat_attempt, tell_disk_wait
from webapp.worker_door.trainer_requests.contract import NOTHING, RequestRefused
from webapp.worker_door.trajectories import read_screenshot
from workers.gpu.coordinator.handler_contract import AttemptContext, handles
from workers.gpu.policy_server_process import PolicyServerLoading, WeightsRefused
from workers.reports.contract import CallRefused
from workers.reports.current import reports

CONTROL_OF_STATUS = {
    ExperimentStatus.PAUSING: Control.PAUSE,
    ExperimentStatus.CANCELLING: Control.CANCEL,
    ExperimentStatus.CANCELLED: Control.CANCEL,
}


def sync_weights(context: AttemptContext, request: WeightsRequest) -> routes.WeightsSynced:
    try:
        return context.policy.sync_weights(request)
    except WeightsRefused as error:
        raise RequestRefused(str(error), 409) from error
    except PolicyServerLoading as error:
        raise RequestRefused(str(error), 503, code=LOADING) from error


def test_eyes(context: AttemptContext, request: EyeTestRequest) -> EyeTestAnswer:
    try:
        return context.policy.eyes(request)
    except PolicyServerLoading as error:
        raise RequestRefused(str(error), 503, code=LOADING) from error


def command_engine(context: AttemptContext, wanted: routes.EngineCommand) -> Nothing:
    try:
        context.policy.command_engine(wanted.command)
    except PolicyServerLoading as error:
        raise RequestRefused(str(error), 503, code=LOADING) from error
    return NOTHING


def get_control(context: AttemptContext, _: Nothing) -> routes.ControlAnswer:
    status = patiently(reports().request, beat_attempt, context.attempt_id).status
    command = CONTROL_OF_STATUS.get(status, Control.RUN)
    return routes.ControlAnswer(command=command, needs_weights=context.policy.needs_weights())


def find_room(context: AttemptContext, wanted: routes.CheckpointSize) -> routes.RoomAnswer:
    found = shortage_of_checkpoint(Path(wanted.folder), wanted.num_bytes)
    shortage = str(found) if found else ""
    reports().report(tell_disk_wait, context.attempt_id, shortage)
    return routes.RoomAnswer(shortage=shortage)


def get_frame(_: object, wanted: routes.FrameName) -> bytes:
    try:
        return reports().request(read_screenshot, wanted.sha256)
    except (FileNotFoundError, CallRefused) as error:
        raise RequestRefused(f"sha256: no frame {wanted.sha256}", 404) from error


OF_EVERY_HOST = (handles(routes.FRAME, get_frame),)
"""What ranks beside the first ask, each of its own host."""
HANDLERS = (
    *OF_EVERY_HOST,
    handles(routes.WEIGHTS, sync_weights),
    handles(routes.EYES, test_eyes),
    handles(routes.ENGINE, command_engine),
    handles(routes.CONTROL, get_control),
    handles(routes.CHECKPOINT_ROOM, find_room),
)
