"""What the trainer reports, written to the database."""

from __future__ import annotations

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
from workers.gpu.coordinator.handler_contract import NOTHING, AttemptContext, handles
from workers.gpu.webapp_imports import (
    Experiment,
    alarms,
    record_skips,
    record_uses,
    trainer_reports,
    trajectories,
    usable_checkpoints,
)


def report_stage(context: AttemptContext, report: StageReport) -> Nothing:
    if report.status == "started":
        trainer_reports.start_stage(
            experiment_id=context.experiment_id, name=report.name, total=report.total, unit=report.unit
        )
    else:
        trainer_reports.finish_stage(experiment_id=context.experiment_id, name=report.name)
    return NOTHING


def report_progress(context: AttemptContext, report: ProgressReport) -> Nothing:
    trainer_reports.report_progress(
        experiment_id=context.experiment_id, stage=report.stage, done=report.done, total=report.total
    )
    return NOTHING


def report_metrics(context: AttemptContext, report: MetricsReport) -> Nothing:
    trainer_reports.record_metrics(
        experiment_id=context.experiment_id,
        attempt=context.attempt,
        step=report.step,
        values=report.values,
        policy_version=report.policy_version,
    )
    return NOTHING


def report_members(context: AttemptContext, updates: list[MemberUpdate]) -> Nothing:
    trajectories.record_member_updates(experiment_id=context.experiment_id, updates=updates)
    return NOTHING


def report_replay_uses(context: AttemptContext, uses: list[ReplayUse]) -> Nothing:
    record_uses(experiment=Experiment.objects.get(pk=context.experiment_id), uses=uses)
    return NOTHING


def report_replay_skips(context: AttemptContext, skips: list[ReplaySkip]) -> Nothing:
    record_skips(experiment=Experiment.objects.get(pk=context.experiment_id), skips=skips)
    return NOTHING


def report_evaluation(context: AttemptContext, result: EvaluationResult) -> Nothing:
    trainer_reports.record_evaluation(experiment_id=context.experiment_id, result=result)
    return NOTHING


def report_checkpoint(context: AttemptContext, report: CheckpointReport) -> Nothing:
    trainer_reports.record_checkpoint(experiment_id=context.experiment_id, report=report)
    return NOTHING


def report_resumed(context: AttemptContext, report: CheckpointReport) -> Nothing:
    trainer_reports.record_resume(experiment_id=context.experiment_id, attempt=context.attempt, report=report)
    return NOTHING


def report_checkpoint_deleted(context: AttemptContext, report: CheckpointDeleted) -> Nothing:
    trainer_reports.record_checkpoint_deleted(experiment_id=context.experiment_id, path=report.path)
    return NOTHING


def get_checkpoints_in_use(context: AttemptContext, _: Nothing) -> routes.CheckpointPaths:
    return routes.CheckpointPaths(paths=tuple(usable_checkpoints.paths_in_use(context.experiment_id)))


def report_alarms(context: AttemptContext, report: StepAlarms) -> Nothing:
    alarms.take_step(experiment_id=context.experiment_id, report=report)
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
