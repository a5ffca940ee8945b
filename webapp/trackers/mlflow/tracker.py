"""MLflow: a run in the MLflow experiment `deskhand` at the tracking address, by the package mlflow-skinny."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from google.protobuf.json_format import Error as NoMessage
from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from training.untrusted.pictures import open_picture
from webapp.trackers.contract import Picture, Point, TrackedRun, TrackerError

EXPERIMENT = "deskhand"
PICTURES = "images"
"""Where MLflow keeps a run's."""
ID_TAG = "deskhand.experiment"
MAX_POINTS, MAX_PARAMS, MAX_TEXT = 1000, 100, 6000
"""What MLflow takes in one call, and in one value."""
STORES = {"mlflow-artifacts", "s3", "gs", "abfss", "wasbs"}
"""Where a server may let pictures be written: not to files of this machine."""
MOST_SAID = 500
MALFORMED = (NoMessage, KeyError, IndexError, TypeError, AttributeError, ValueError)
"""What an answer without its parts ends as in the client."""
STATUSES = {"finished": "FINISHED", "failed": "FAILED", "cancelled": "KILLED"}


class MlflowServer:
    """The run of an experiment is found by its tag; what it holds up to a step is not sent again."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._client = MlflowClient(tracking_uri=address)
        self._run_id = self._store = ""
        self._sent: dict[str, int] = {}
        """Series -> newest step that the run had before."""

    def begin(self, run: TrackedRun) -> None:
        with self._failures():
            experiment = self._client.get_experiment_by_name(EXPERIMENT)
            where = experiment.experiment_id if experiment else self._client.create_experiment(EXPERIMENT)
            query = f"tags.`{ID_TAG}` = '{run.experiment_id}'"
            found = self._client.search_runs([where], filter_string=query, max_results=1)
            if found:
                self._run_id, self._store = found[0].info.run_id, found[0].info.artifact_uri
                self._sent = {
                    name: self._client.get_metric_history(self._run_id, name)[-1].step
                    for name in found[0].data.metrics
                }
                return
            tags = {ID_TAG: str(run.experiment_id), **run.tags}
            made = self._client.create_run(where, run_name=run.name, tags=tags).info
            self._run_id, self._store = made.run_id, made.artifact_uri
            params = [Param(key, str(value)[:MAX_TEXT]) for key, value in run.config.items()]
            for start in range(0, len(params), MAX_PARAMS):
                self._client.log_batch(self._run_id, params=params[start : start + MAX_PARAMS])

    def send(self, points: Sequence[Point]) -> None:
        fresh = [
            Metric(point.name, point.value, round(point.at.timestamp() * 1000), point.step)
            for point in points
            if point.step > self._sent.get(point.name, -1)
        ]
        with self._failures():
            for start in range(0, len(fresh), MAX_POINTS):
                self._client.log_batch(self._run_id, metrics=fresh[start : start + MAX_POINTS])

    def show(self, pictures: Sequence[Picture]) -> None:
        with self._failures():
            if urlsplit(self._store).scheme not in STORES:
                where = f"would lie at {_plain(self._store)}, not with the server"
                remedy = "start it with --serve-artifacts, or leave them out by --pictures 0"
                raise TrackerError(f"mlflow: {self._address}: the run's pictures {where}: {remedy}")
            there = {file.path for file in self._client.list_artifacts(self._run_id, PICTURES)}
            for picture in pictures:
                # MLflow's name of a picture: its key with ~ for /, then step, time and an id.
                start = f"{PICTURES}/{picture.name.replace('/', '~')}+step+{picture.step}+"
                if not any(path.startswith(start) for path in there):
                    screens = open_picture(picture.jpeg)
                    self._client.log_image(self._run_id, screens, key=picture.name, step=picture.step)

    def end(self, status: str) -> None:
        with self._failures():
            self._client.log_batch(self._run_id, tags=[RunTag("deskhand.status", status)])
            if status in STATUSES:
                self._client.set_terminated(self._run_id, STATUSES[status])

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except MlflowException as error:
            raise TrackerError(f"mlflow: {self._address}: {_plain(error.message)}") from error
        except MALFORMED as error:
            said = f"it does not answer as an MLflow server: {_plain(str(error))}"
            raise TrackerError(f"mlflow: {self._address}: {said}") from error


def _plain(text: object) -> str:
    """Of the server's words what a terminal shows as words."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text)[:MOST_SAID])
