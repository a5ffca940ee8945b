"""/experiments/ID/trajectories: what it recorded as Parquet shards, screenshots inside."""

from typing import Literal

from django.http import HttpResponseBase, StreamingHttpResponse
from ninja import Query, Router

from training.contracts.types import Purpose
from webapp.accounts.access import MemberRequest
from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.api.binary import binary_answer
from webapp.experiments.access import get_experiment
from webapp.experiments.queries.rows_behind_resume import lost_trajectories
from webapp.lib.media.file_streams import stream
from webapp.lib.request_values import BadValue
from webapp.trajectories.dataset.parquet_stream import CONTENT_TYPE
from webapp.trajectories.dataset.shards import MAX_SHARDS, shard_pieces
from webapp.trajectories.models import Trajectory

router = Router(tags=["trajectories"])


@router.get("/{int:pk}/trajectories", operation_id="export_trajectories", **binary_answer(CONTENT_TYPE))
def export_trajectories(
    request: MemberRequest,
    pk: int,
    purpose: Literal["", "train", "evaluation", "demonstration", "verification", "branch"] = "",
    shard: int = Query(0, ge=0, lt=MAX_SHARDS),
    num_shards: int = Query(1, ge=1, le=MAX_SHARDS),
) -> HttpResponseBase:
    """Ended trajectories as one Parquet shard that `datasets` opens: a row each, with screens and turns.
    `train` leaves out what a lost attempt sampled and no update used."""
    if shard >= num_shards:
        raise BadValue("shard", f"must be below num_shards, {num_shards}")
    experiment = get_experiment(request, pk)
    rows = Trajectory.objects.filter(experiment=experiment, ended_at__isnull=False, pruned_at=None)
    if purpose:
        rows = rows.filter(purpose=purpose)
    if purpose == Purpose.TRAIN:
        rows = rows.exclude(lost_trajectories())
    log_action(
        AuditAction.EXPORTED, person=request.user, team=experiment.team_id, kind="experiment",
        object_id=experiment.pk, trajectories=purpose or "all", shard=f"{shard} of {num_shards}",
    )  # fmt: skip
    response = StreamingHttpResponse(stream(shard_pieces(rows, shard, num_shards)), content_type=CONTENT_TYPE)
    name = f"experiment-{experiment.pk}-{shard:05d}-of-{num_shards:05d}.parquet"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
