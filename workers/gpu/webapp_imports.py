"""The only door from the gpu worker to the web application: all that its modules use of it."""

from webapp.dispatcher.send_waiting import fill_free_slots
from webapp.experiments.checkpoints import checkpoint_copies, exports, usable_checkpoints
from webapp.experiments.checkpoints.checkpoint_copies import CheckpointElsewhere, SavedCheckpoint
from webapp.experiments.installation_limits import require_runnable
from webapp.experiments.lifecycle import alarms, attempts, gangs, status_changes, trainer_reports
from webapp.experiments.lifecycle.disk_wait_text import tell_disk_wait
from webapp.experiments.lifecycle.engine_wait_text import tell_start
from webapp.experiments.lifecycle.trainer_reports import GpuLook, record_gpu_sample
from webapp.experiments.models import (
    Attempt,
    AttemptStatus,
    CheckpointExport,
    Experiment,
    ExperimentStatus,
    TaskRecord,
)
from webapp.experiments.pinned_models import pin_models
from webapp.experiments.weight_lineage import WeightLineage
from webapp.fleet.worker_reports import record_gpus
from webapp.lib.copies.folder_copy import (
    CopyDamaged,
    Manifest,
    copied_sum,
    fetch_folder,
    read_manifest,
    upload_folder,
)
from webapp.lib.copies.place import CopiesPlace, copies_place
from webapp.lib.database_pool import give_back_connection, lent_connection
from webapp.lib.disk_room import shortage_of_checkpoint, shortages
from webapp.lib.host_links.certificates import make_self_signed
from webapp.lib.patience import patiently
from webapp.lib.send_job import JOIN_GANG, send_job
from webapp.replay import injections
from webapp.replay.injections import record_skips, record_uses
from webapp.reports.model_card import model_card
from webapp.trajectories import lifecycle as trajectories
from webapp.trajectories.frames import frames_folder, read_frame
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.row_to_types import group_of, trajectory_of, turn_limit

__all__ = [
    "Attempt",
    "AttemptStatus",
    "CheckpointElsewhere",
    "CheckpointExport",
    "CopiesPlace",
    "CopyDamaged",
    "Experiment",
    "ExperimentStatus",
    "GpuLook",
    "Group",
    "Manifest",
    "SavedCheckpoint",
    "TaskRecord",
    "Trajectory",
    "JOIN_GANG",
    "WeightLineage",
    "alarms",
    "attempts",
    "checkpoint_copies",
    "copied_sum",
    "copies_place",
    "exports",
    "fetch_folder",
    "gangs",
    "give_back_connection",
    "group_of",
    "lent_connection",
    "usable_checkpoints",
    "fill_free_slots",
    "frames_folder",
    "patiently",
    "pin_models",
    "model_card",
    "read_frame",
    "read_manifest",
    "record_gpu_sample",
    "record_gpus",
    "record_skips",
    "record_uses",
    "require_runnable",
    "shortage_of_checkpoint",
    "send_job",
    "shortages",
    "status_changes",
    "tell_disk_wait",
    "tell_start",
    "trainer_reports",
    "trajectories",
    "trajectory_of",
    "turn_limit",
    "upload_folder",
    "injections",
    "make_self_signed",
]
