"""What a gpu worker tells of its host: GPUs, how busy they are, and what its child processes write."""

from typing import Literal

from webapp.experiments.log_files import append_log
from webapp.experiments.services.gpu_samples import GpuLook as GpuLook
from webapp.experiments.services.gpu_samples import record_gpu_sample as record_gpu_sample
from webapp.fleet.reported_values import ReportedGpu as ReportedGpu
from webapp.fleet.services.workers import record_gpus as record_gpus
from webapp.lib.remote_calls import OwnAttempt, gpu_host
from webapp.worker_door.attempts import attempt_of

LogName = Literal["trainer", "policy"]


@gpu_host.report
def tell_log(attempt_id: OwnAttempt, name: LogName, text: str) -> None:
    """Lines of a child process of a joined host, in order: pages read the server's own files."""
    row = attempt_of(attempt_id)
    append_log(row.experiment_id, f"{name}-{row.number}.log", text)
