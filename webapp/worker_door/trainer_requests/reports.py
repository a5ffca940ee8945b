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
from webapp.worker_door.trainer_requests.contract import TrainerCall, handles, takes


def report_stage(call: TrainerCall, report: StageReport) -> None:
    if report.status == "started":
        stages.start_stage(
            experiment_id=call.experiment_id, name=report.name, total=report.total, unit=report.unit
        )
    else:
        stages.finish_stage(experiment_id=call.experiment_id, name=report.name)


def report_progress(call: TrainerCall, report: ProgressReport) -> None:
    stages.record_progress(
        experiment_id=call.experiment_id, stage=report.stage, done=report.done, total=report.total
    )


def report_metrics(call: TrainerCall, report: MetricsReport) -> None:
    metrics.record_metrics(
        experiment_id=call.experiment_id,
        attempt=call.attempt.number,
        step=report.step,
        values=report.values,
        policy_version=report.policy_version,
    )


def report_members(call: TrainerCall, updates: list[MemberUpdate]) -> None:
    advantages.record_member_updates(experiment_id=call.experiment_id, updates=updates)


def report_replay_uses(call: TrainerCall, uses: list[ReplayUse]) -> None:
    record_uses(experiment=call.attempt.experiment, uses=uses)


def report_replay_skips(call: TrainerCall, skips: list[ReplaySkip]) -> None:
    record_skips(experiment=call.attempt.experiment, skips=skips)


def report_evaluation(call: TrainerCall, result: EvaluationResult) -> None:
    evaluations.record_evaluation(experiment_id=call.experiment_id, result=result)


def report_checkpoint(call: TrainerCall, report: CheckpointReport) -> None:
    checkpoints.record_checkpoint(experiment_id=call.experiment_id, report=report, saved_by=call.attempt)


def report_resumed(call: TrainerCall, report: CheckpointReport) -> None:
    checkpoints.record_resume(experiment_id=call.experiment_id, attempt=call.attempt.number, report=report)


def report_checkpoint_deleted(call: TrainerCall, report: CheckpointDeleted) -> None:
    checkpoints.record_checkpoint_deleted(experiment_id=call.experiment_id, path=report.path)


def get_checkpoints_in_use(call: TrainerCall, _: Nothing) -> routes.CheckpointPaths:
    return routes.CheckpointPaths(paths=tuple(paths_in_use(call.experiment_id)))


def report_alarms(call: TrainerCall, report: StepAlarms) -> None:
    alarms.record_alarms(experiment_id=call.experiment_id, report=report)


HANDLERS = (
    takes(routes.STAGE, report_stage),
    takes(routes.PROGRESS, report_progress),
    takes(routes.METRICS, report_metrics),
    takes(routes.MEMBERS, report_members),
    takes(routes.REPLAY_USES, report_replay_uses),
    takes(routes.REPLAY_SKIPS, report_replay_skips),
    takes(routes.EVALUATIONS, report_evaluation),
    takes(routes.CHECKPOINTS, report_checkpoint),
    takes(routes.RESUMED, report_resumed),
    takes(routes.CHECKPOINT_DELETED, report_checkpoint_deleted),
    handles(routes.CHECKPOINTS_IN_USE, get_checkpoints_in_use),
    takes(routes.ALARMS, report_alarms),
)
