"""What a coordinator answers on its own host: weight syncs, the engine's sleep, pause, cancel, room on the
disk, frames."""

from __future__ import annotations

from pathlib import Path

from training.contracts import coordinator as routes
from training.contracts.route_types import LOADING, Nothing
from training.contracts.types import Control
from training.contracts.weight_requests import WeightsRequest
from workers.door.https_door import DoorRefused
from workers.gpu.coordinator.handler_contract import AttemptContext, handles
from workers.gpu.policy_server_process import PolicyServerLoading, WeightsRefused
from workers.gpu.webapp_imports import (
    NOTHING,
    ExperimentStatus,
    RequestRefused,
    beat_attempt,
    patiently,
    read_screenshot,
    shortage_of_checkpoint,
    tell_disk_wait,
)

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


def command_engine(context: AttemptContext, wanted: routes.EngineCommand) -> Nothing:
    try:
        context.policy.command_engine(wanted.command)
    except PolicyServerLoading as error:
        raise RequestRefused(str(error), 503, code=LOADING) from error
    return NOTHING


def get_control(context: AttemptContext, _: Nothing) -> routes.ControlAnswer:
    status = patiently(beat_attempt, context.attempt_id).status
    command = CONTROL_OF_STATUS.get(status, Control.RUN)
    return routes.ControlAnswer(command=command, needs_weights=context.policy.needs_weights())


def find_room(context: AttemptContext, wanted: routes.CheckpointSize) -> routes.RoomAnswer:
    found = shortage_of_checkpoint(Path(wanted.folder), wanted.num_bytes)
    shortage = str(found) if found else ""
    tell_disk_wait(context.attempt_id, shortage)
    return routes.RoomAnswer(shortage=shortage)


def get_frame(_: object, wanted: routes.FrameName) -> bytes:
    try:
        return read_screenshot(wanted.sha256)
    except (FileNotFoundError, DoorRefused) as error:
        raise RequestRefused(f"sha256: no frame {wanted.sha256}", 404) from error


OF_EVERY_HOST = (handles(routes.FRAME, get_frame),)
"""What ranks beside the first ask, each of its own host."""
HANDLERS = (
    *OF_EVERY_HOST,
    handles(routes.WEIGHTS, sync_weights),
    handles(routes.ENGINE, command_engine),
    handles(routes.CONTROL, get_control),
    handles(routes.CHECKPOINT_ROOM, find_room),
)
