"""What trackers show of an evaluation: some of its episodes, a strip of screens each."""

import logging

from training.contracts.number_text import counted
from webapp.experiments.models import Evaluation
from webapp.lib.media.errors import StorageAway
from webapp.trackers.contract import Picture
from webapp.trajectories.models import Trajectory
from webapp.trajectories.pictures.strips import screens_across, strip_of
from webapp.trajectories.queries.evaluation_episodes import episodes_of

log = logging.getLogger(__name__)
SCREENS = 4
"""In one picture."""


def pictures_of(evaluation: Evaluation, number: int) -> list[Picture]:
    """At most `number`, of episodes spread evenly over the tasks; without those whose screens are gone."""
    episodes = [episode for episode in episodes_of(evaluation) if episode.score is not None]
    number = min(number, len(episodes))
    chosen = [episodes[len(episodes) * place // number] for place in range(number)]
    found = (_picture(evaluation, place, episode) for place, episode in enumerate(chosen, start=1))
    return [picture for picture in found if picture is not None]


def _picture(evaluation: Evaluation, place: int, episode: Trajectory) -> Picture | None:
    try:
        strip = strip_of(screens_across(episode, SCREENS))
    except (FileNotFoundError, StorageAway) as error:
        log.warning("trajectory %d goes without its picture: %s", episode.pk, error)
        return None
    if strip is None:
        return None
    return Picture(
        name=f"samples/{evaluation.kind}/{place}",
        step=evaluation.step,
        jpeg=strip,
        caption=f"{episode.task.task_id}: score {episode.score:g}, {counted(episode.num_turns, 'turn')}",
        at=evaluation.at,
    )
