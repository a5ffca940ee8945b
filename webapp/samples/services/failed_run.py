"""How the sample that failed came to its end: config, stages, alarm, incident and log."""

from training.contracts.stage_names import StageName
from webapp.experiments.log_files import log_folder
from webapp.experiments.models import (
    AlarmRecord,
    AlarmStatus,
    Experiment,
    ExperimentStatus,
    Incident,
    StageStatus,
)

TIMES = 10
"""Its learning rate against the recorded one."""
GRAD_NORM, LIMIT = 812.4, 50.0
MESSAGE = "The loss was not finite at step {step}: lower optimiser.learning_rate, or launch a clone of it."
LOG = """INFO This is the log of a sample: its failure was written, not met.
INFO step 1 done
WARNING grad_norm_explosion at step 2: 812.4 is above 50
ERROR the loss was not finite at step 2
"""


def fail_at_step(experiment: Experiment, step: int) -> None:
    """Turn a stored run into one that ended with an error at `step`."""
    config = dict(experiment.config)
    rate = config["optimiser"]["learning_rate"] * TIMES
    config["optimiser"] = {**config["optimiser"], "learning_rate": rate}
    message = MESSAGE.format(step=step)
    Experiment.objects.filter(pk=experiment.pk).update(
        status=ExperimentStatus.FAILED, config=config, message=message, stage="grpo"
    )
    running, pending = StageStatus.RUNNING, StageStatus.PENDING
    experiment.stages.filter(name=StageName.GRPO).update(done=step - 1, status=running, ended_at=None)
    after = experiment.stages.filter(name=StageName.EVALUATION_AFTER)
    after.update(done=0, status=pending, started_at=None, ended_at=None)
    AlarmRecord.objects.create(
        experiment=experiment, name="grad_norm_explosion", status=AlarmStatus.ACTIVE, severity="critical",
        step=step, since_step=step, value=GRAD_NORM, limit=LIMIT,
        message=f"The gradient's norm was {GRAD_NORM}.", remedy="Lower optimiser.learning_rate.",
    )  # fmt: skip
    Incident.objects.create(experiment=experiment, kind="failed", message=message)
    folder = log_folder(experiment.pk)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trainer-1.log").write_text(LOG)
    experiment.refresh_from_db()
