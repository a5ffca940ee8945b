"""What the trainer reports, written to the database."""

from training.contracts import coordinator as routes
from training.contracts.route_types import Nothing
from training.contracts.trainer_reports import (
    CheckpointDeleted,
    CheckpointReport,
    EvaluationResult,
    MemberUpdate,
    MetricsReport,
    ProgressReport,
    ReplaySkip,
    ReplayUse,
    StageReport,
    StepAlarms,
)
from webapp.analysis.services import evaluations
from webapp.experiments.queries.checkpoints import paths_in_use
from webapp.experiments.services import alarms, checkpoints, metrics, stages
from webapp.replay.services.injections import record_skips, record_uses
from webapp.trajectories.services import advantages
from webapp.worker_door.trainer_requests.contract import NOTHING, TrainerCall, handles


def report_stage(call: TrainerCall, report: StageReport) -> Nothing:
    if report.status == "started":
        stages.start_stage(
            experiment_id=call.experiment_id, name=report.name, total=report.total, unit=report.unit
        )
    else:
        stages.finish_stage(experiment_id=call.experiment_id, name=report.name)
    return NOTHING


def report_progress(call: TrainerCall, report: ProgressReport) -> Nothing:
    stages.record_progress(
        experiment_id=call.experiment_id, stage=report.stage, done=report.done, total=report.total
    )
    return NOTHING


def report_metrics(call: TrainerCall, report: MetricsReport) -> Nothing:
    metrics.record_metrics(
        experiment_id=call.experiment_id,
        attempt=call.attempt.number,
        step=report.step,
        values=report.values,
        policy_version=report.policy_version,
    )
    return NOTHING


def report_members(call: TrainerCall, updates: list[MemberUpdate]) -> Nothing:
    advantages.record_member_updates(experiment_id=call.experiment_id, updates=updates)
    return NOTHING


def report_replay_uses(call: TrainerCall, uses: list[ReplayUse]) -> Nothing:
    record_uses(experiment=call.attempt.experiment, uses=uses)
    return NOTHING


def report_replay_skips(call: TrainerCall, skips: list[ReplaySkip]) -> Nothing:
    record_skips(experiment=call.attempt.experiment, skips=skips)
    return NOTHING


def report_evaluation(call: TrainerCall, result: EvaluationResult) -> Nothing:
    evaluations.record_evaluation(experiment_id=call.experiment_id, result=result)
    return NOTHING


def report_checkpoint(call: TrainerCall, report: CheckpointReport) -> Nothing:
    checkpoints.record_checkpoint(experiment_id=call.experiment_id, report=report, saved_by=call.attempt)
    return NOTHING


def report_resumed(call: TrainerCall, report: CheckpointReport) -> Nothing:
    checkpoints.record_resume(experiment_id=call.experiment_id, attempt=call.attempt.number, report=report)
    return NOTHING


def report_checkpoint_deleted(call: TrainerCall, report: CheckpointDeleted) -> Nothing:
    checkpoints.record_checkpoint_deleted(experiment_id=call.experiment_id, path=report.path)
    return NOTHING


def get_checkpoints_in_use(call: TrainerCall, _: Nothing) -> routes.CheckpointPaths:
    return routes.CheckpointPaths(paths=tuple(paths_in_use(call.experiment_id)))


def report_alarms(call: TrainerCall, report: StepAlarms) -> Nothing:
    alarms.record_alarms(experiment_id=call.experiment_id, report=report)
    return NOTHING


HANDLERS = (
    handles(routes.STAGE, report_stage),
    handles(routes.PROGRESS, report_progress),
    handles(routes.METRICS, report_metrics),
    handles(routes.MEMBERS, report_members),
    handles(routes.REPLAY_USES, report_replay_uses),
    handles(routes.REPLAY_SKIPS, report_replay_skips),
    handles(routes.EVALUATIONS, report_evaluation),
    handles(routes.CHECKPOINTS, report_checkpoint),
    handles(routes.RESUMED, report_resumed),
    handles(routes.CHECKPOINT_DELETED, report_checkpoint_deleted),
    handles(routes.CHECKPOINTS_IN_USE, get_checkpoints_in_use),
    handles(routes.ALARMS, report_alarms),
)
