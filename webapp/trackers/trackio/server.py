"""trackio: a run in the project `deskhand` of the server at ADDRESS, over its HTTP API (version 1).

Not by the package trackio: it wants an older pillow than ours. ADDRESS is the link for writing that
`trackio show` prints, with its write_token.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import httpx

from webapp.trackers.contract import Picture, Point, TrackedRun, TrackerError

PROJECT = "deskhand"
API_VERSION = 1
TIMEOUT_S = 60.0


class TrackioServer:
    """Every point has an id of its own, under which the server stores it once."""

    def __init__(self, address: str) -> None:
        try:
            url = httpx.URL(address)
        except httpx.InvalidURL as error:
            raise TrackerError(f"trackio: {address}: {error}") from error
        self._address = str(url.copy_with(query=None, fragment=None)).rstrip("/")
        headers = {"X-Trackio-Write-Token": url.params.get("write_token", "")}
        self._http = httpx.Client(headers=headers, timeout=TIMEOUT_S)
        self._run: dict[str, Any] = {}
        self._config: dict[str, Any] = {}

    def begin(self, run: TrackedRun) -> None:
        found = self._answer("GET", "version")
        if found.get("api_version") != API_VERSION:
            raise TrackerError(f"trackio: {self._address} has no HTTP API of version {API_VERSION}; 0.43 has")
        self._run = {"project": PROJECT, "run": run.name, "run_id": f"experiment-{run.experiment_id}"}
        self._config = {**run.tags, **run.config}

    def send(self, points: Sequence[Point]) -> None:
        logs = [
            {
                **self._run,
                "metrics": {point.name: point.value if math.isfinite(point.value) else None},
                "step": point.step,
                "log_id": f"{self._run['run_id']}/{point.name}/{point.step}/{point.value!r}",
                "config": None,
            }
            for point in points
        ]
        if logs:
            logs[0]["config"] = self._config
            self._store(logs)

    def show(self, pictures: Sequence[Picture]) -> None:
        for picture in pictures:
            file = f"{picture.name.replace('/', '-')}.jpg"
            place = {"project": PROJECT, "run": self._run["run"], "step": picture.step, "relative_path": None}
            staged = self._answer("POST", "api/upload", files={"files": (file, picture.jpeg, "image/jpeg")})
            upload = {**place, "uploaded_file": {"path": staged["paths"][0], "orig_name": file}}
            self._call("bulk_upload_media", uploads=[upload])
            path = f"{PROJECT}/{self._run['run']}/{picture.step}/{file}"
            shown = {"_type": "trackio.image", "file_path": path, "caption": picture.caption}
            log_id = f"{self._run['run_id']}/{picture.name}/{picture.step}"
            logged = {"metrics": {picture.name: shown}, "step": picture.step, "log_id": log_id}
            self._store([{**self._run, **logged, "config": None}])

    def end(self, status: str) -> None:
        """trackio keeps no state of a run: its status is part of the config."""
        config = {**self._config, "deskhand.status": status}
        self._store(
            [{**self._run, "metrics": {}, "step": 0, "log_id": self._run["run_id"], "config": config}]
        )
        self._http.close()

    def _store(self, logs: list[dict[str, Any]]) -> None:
        self._call("bulk_log", logs=logs)

    def _call(self, name: str, **arguments: Any) -> None:
        sent = {"args": [], "kwargs": {**arguments, "hf_token": None}}
        self._answer("POST", f"api/{name}", json=sent)

    def _answer(self, method: str, path: str, **sent: Any) -> dict[str, Any]:
        try:
            answer = self._http.request(method, f"{self._address}/{path}", **sent)
            found = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise TrackerError(f"trackio: {self._address}: {error}") from error
        if answer.is_error or not isinstance(found, dict) or found.get("error"):
            said = found.get("error") if isinstance(found, dict) else None
            raise TrackerError(f"trackio: {self._address}: {said or answer.status_code}")
        return found
