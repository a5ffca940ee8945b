"""The only door from the gpu worker to the web application: all that its modules tell, ask and use of it.

What they tell and ask are rows of the contract: called here, or sent over HTTPS by a joined host.
"""

from webapp.checkpoints.queries.copies import CheckpointElsewhere, SavedCheckpoint
from webapp.experiments.models import ExperimentStatus
from webapp.experiments.pinned_models import with_models
from webapp.experiments.queries.gangs import Gathering
from webapp.experiments.services.gpu_samples import GpuLook
from webapp.fleet.reported_values import ReportedGpu
from webapp.lib.copies.folder_copy import (
    CopyDamaged,
    Manifest,
    copied_sum,
    fetch_folder,
    read_manifest,
    upload_folder,
)
from webapp.lib.copies.place import CopiesPlace, copies_place
from webapp.lib.database_pool import lent_connection
from webapp.lib.disk_room import shortage_of_checkpoint, shortages
from webapp.lib.host_links.certificates import make_self_signed
from webapp.lib.outage_retries import patiently
from webapp.trajectories.services.frames import frames_folder
from webapp.worker_door import attempts, gangs, gpu_hosts, saved_weights, trajectories
from webapp.worker_door.attempts import AttemptNow, HeldAttempt
from webapp.worker_door.gpu_hosts import LogName
from webapp.worker_door.saved_weights import HeldExport
from webapp.worker_door.trainer_requests import answers
from webapp.worker_door.trainer_requests.answers import HANDLERS, TrainerAnswer
from webapp.worker_door.trainer_requests.contract import NOTHING, RequestRefused
from workers.door.through import through

# --- attempts ----------------------------------------------------------------------------------------
claim_attempt = through(attempts.claim_attempt)
runnable_config = through(attempts.runnable_config)
record_pinned = through(attempts.record_pinned)
beat_attempt = through(attempts.beat_attempt)
is_current = through(attempts.is_current)
start_attempt = through(attempts.start_attempt)
record_gpus_held = through(attempts.record_gpus_held)
tell_start = through(attempts.tell_start)
tell_disk_wait = through(attempts.tell_disk_wait)
end_finished = through(attempts.end_finished)
end_stopped = through(attempts.end_stopped)
end_crashed = through(attempts.end_crashed)
end_incomplete = through(attempts.end_incomplete)
cancel_groups = through(attempts.cancel_groups)

# --- the trainer's requests --------------------------------------------------------------------------
answer_trainer = through(answers.answer_trainer)
take_report = through(answers.take_report)
read_screenshot = through(trajectories.read_screenshot)

# --- hosts of one attempt ----------------------------------------------------------------------------
call_gang = through(gangs.call_gang)
come = through(gangs.come)
leave = through(gangs.leave)
gathering = through(gangs.gathering)

# --- this host ---------------------------------------------------------------------------------------
record_gpus = through(gpu_hosts.record_gpus)
record_gpu_sample = through(gpu_hosts.record_gpu_sample)
tell_log = through(gpu_hosts.tell_log)

# --- checkpoints and exports -------------------------------------------------------------------------
checkpoints_to_resume = through(saved_weights.checkpoints_to_resume)
why_not_here = through(saved_weights.why_not_here)
go_on_from_older = through(saved_weights.go_on_from_older)
copied_checkpoint = through(saved_weights.copied_checkpoint)
wanting_copies = through(saved_weights.wanting_copies)
record_copy = through(saved_weights.record_copy)
unneeded_copies = through(saved_weights.unneeded_copies)
forget_copy = through(saved_weights.forget_copy)
waiting_exports = through(saved_weights.waiting_exports)
claim_export = through(saved_weights.claim_export)
card_of = through(saved_weights.card_of)
report_export = through(saved_weights.report_export)
finish_export = through(saved_weights.finish_export)
fail_export = through(saved_weights.fail_export)
uncopied_exports = through(saved_weights.uncopied_exports)
record_export_copy = through(saved_weights.record_export_copy)
removable_exports = through(saved_weights.removable_exports)
confirm_removal = through(saved_weights.confirm_removal)

__all__ = [
    "HANDLERS",
    "NOTHING",
    "AttemptNow",
    "CheckpointElsewhere",
    "CopiesPlace",
    "CopyDamaged",
    "ExperimentStatus",
    "Gathering",
    "GpuLook",
    "HeldAttempt",
    "HeldExport",
    "LogName",
    "Manifest",
    "ReportedGpu",
    "RequestRefused",
    "SavedCheckpoint",
    "TrainerAnswer",
    "copied_sum",
    "copies_place",
    "fetch_folder",
    "frames_folder",
    "lent_connection",
    "make_self_signed",
    "patiently",
    "read_manifest",
    "shortage_of_checkpoint",
    "shortages",
    "upload_folder",
    "with_models",
]
