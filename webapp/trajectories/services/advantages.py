"""What the learner says of a group's members."""

from django.db import transaction

from training.contracts.trainer_reports import MemberUpdate
from webapp.experiments.queries.streams import experiment_stream
from webapp.live.event_publishing import publish
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.announcements import stream_of


def record_member_updates(*, experiment_id: int, updates: list[MemberUpdate]) -> None:
    """Advantages and logprob gaps, once the step used the group."""
    with transaction.atomic():
        for update in updates:
            Trajectory.objects.filter(pk=update.trajectory_id, experiment_id=experiment_id).update(
                advantage=update.advantage, logprob_gap=update.policy_logprob_gap
            )
            publish(
                stream_of(update.trajectory_id),
                "trajectory.updated",
                {"trajectory": update.trajectory_id, "advantage": update.advantage},
            )
        if updates:
            publish(
                experiment_stream(experiment_id),
                "members.updated",
                {"trajectories": [update.trajectory_id for update in updates][:64]},
            )
