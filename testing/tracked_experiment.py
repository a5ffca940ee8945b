"""What every tracker has to show of the experiment."""

from io import BytesIO

from PIL import Image

from webapp.experiments.models import Experiment
from webapp.trackers.follow_experiment import pictures_of
from webapp.trajectories.pictures import strips


def caption_of(experiment: Experiment) -> str:
    task = experiment.trajectories.get().task.task_id
    return f"{task}: score 1, 2 turns"


def strip_of_the_evaluation(experiment: Experiment) -> bytes:
    [picture] = pictures_of(experiment.evaluations.get(), 4)
    assert Image.open(BytesIO(picture.jpeg)).height == strips.HEIGHT
    return picture.jpeg
