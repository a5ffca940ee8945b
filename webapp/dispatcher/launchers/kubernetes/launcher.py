"""One Job per attempt, by the API of the cluster that this machine or pod belongs to."""

import json
import secrets
from collections.abc import Callable, Collection
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from django.conf import settings
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import HTTPError

from webapp.dispatcher.launchers.contract import (
    LAST_LINES,
    ClusterJob,
    JobRequest,
    Launcher,
    LauncherError,
    Phase,
    installation_mark,
)
from webapp.dispatcher.launchers.kubernetes.job_manifest import (
    CONTAINER,
    INSTALLATION_LABEL,
    job_manifest,
    require_usable,
)
from webapp.dispatcher.launchers.kubernetes.job_states import cluster_job, failed_pod

RIGHTS = (
    ("get", "", "podtemplates", ""),
    ("create", "batch", "jobs", ""),
    ("list", "batch", "jobs", ""),
    ("delete", "batch", "jobs", ""),
    ("list", "", "pods", ""),
    ("get", "", "pods", "log"),
    ("list", "", "events", ""),
)
"""All it needs: (verb, API group, resource, subresource); `deploy/kubernetes/gpu-jobs.yaml` grants it."""


LIMIT_S = 20.0
JOB_LABEL = "batch.kubernetes.io/job-name"
LIVE = (Phase.WAITING, Phase.RUNNING)


class _Gone(LauncherError):
    """Raised when what is asked for is not there."""


class Kubernetes(Launcher):
    """The namespace that DESKHAND_KUBERNETES_TEMPLATE names, and the PodTemplate there."""

    def __init__(self) -> None:
        self._mark = installation_mark()
        self._namespace, _, self._template_name = settings.KUBERNETES_TEMPLATE.partition("/")
        self._grace_s = settings.STOP_GRACE_S
        try:
            config.load_config()
        except ConfigException as error:
            raise LauncherError(f"Kubernetes: neither in a pod nor with a KUBECONFIG: {error}") from error
        self._core, self._batch = client.CoreV1Api(), client.BatchV1Api()
        self._last: dict[str, ClusterJob] = {}
        self._removed: set[str] = set()

    def check(self) -> None:
        for verb, group, resource, sub in RIGHTS:
            asked = {"namespace": self._namespace, "verb": verb, "group": group, "resource": resource}
            name = self._template_name if resource == "podtemplates" else ""
            review = {"spec": {"resourceAttributes": {**asked, "subresource": sub, "name": name}}}
            found = self._ask(client.AuthorizationV1Api().create_self_subject_access_review, review)
            if not found["status"]["allowed"]:
                named = f"{resource}/{sub}" if sub else resource
                raise LauncherError(f"Kubernetes: this account may not {verb} {named} in {self._namespace}")
        require_usable(self._template(), self._grace_s)
        self._create(JobRequest(experiment_id=0, attempt=0, num_gpus=0), dry_run="All")

    def jobs(self) -> dict[str, ClusterJob]:
        """One that a person deleted while it was live is reported as stopped for as long as this runs."""
        pods = self._pods()
        found = {}
        for job in self._list(self._batch.list_namespaced_job):
            name = job["metadata"]["name"]
            found[name] = cluster_job(job, pods.get(name, []), "" if name in pods else self._warning(name))
        gone = {
            name: ClusterJob(name, Phase.STOPPED, "Deleted")
            for name, job in self._last.items()
            if name not in found and name not in self._removed and job.phase in (*LIVE, Phase.STOPPED)
        }
        self._last = found | gone
        return dict(self._last)

    def submit(self, wanted: JobRequest) -> str:
        name: str = self._create(wanted)["metadata"]["name"]
        return name

    def cancel(self, names: Collection[str]) -> None:
        for name in names:
            self._removed.add(name)
            with suppress(_Gone):
                self._ask(
                    self._batch.delete_namespaced_job, name, self._namespace, propagation_policy="Background"
                )

    def last_lines(self, name: str) -> str:
        pod = failed_pod(self._pods().get(name, []))
        if not pod:
            return ""
        options = {"container": CONTAINER, "tail_lines": LAST_LINES}
        with suppress(_Gone):
            return self._text(self._core.read_namespaced_pod_log, pod, self._namespace, **options).strip()
        return ""

    def _create(self, wanted: JobRequest, **options: str) -> dict[str, Any]:
        name = f"k8s-{self._mark}-{wanted.experiment_id}-{wanted.attempt}-{secrets.token_hex(2)}"
        body = job_manifest(self._template(), wanted, name=name, mark=self._mark, grace_s=self._grace_s)
        return self._ask(self._batch.create_namespaced_job, self._namespace, body, **options)

    def _template(self) -> dict[str, Any]:
        """Read anew for each Job: an operator's change counts from the next one on."""
        name = self._template_name
        try:
            found = self._ask(self._core.read_namespaced_pod_template, name, self._namespace)
        except LauncherError as error:
            raise LauncherError(f"DESKHAND_KUBERNETES_TEMPLATE: {error}") from error
        template: dict[str, Any] = found.get("template") or {}
        return template

    def _pods(self) -> dict[str, list[dict[str, Any]]]:
        """By the name of their Job."""
        found: dict[str, list[dict[str, Any]]] = {}
        for pod in self._list(self._core.list_namespaced_pod):
            found.setdefault(pod["metadata"]["labels"].get(JOB_LABEL, ""), []).append(pod)
        return found

    def _list(self, method: Callable[..., Any]) -> list[dict[str, Any]]:
        mine = f"{INSTALLATION_LABEL}={self._mark}"
        items: list[dict[str, Any]] = self._ask(method, self._namespace, label_selector=mine)["items"]
        return items

    def _warning(self, job: str) -> str:
        """Why it gets no pod, such as a quota."""
        about = f"involvedObject.kind=Job,involvedObject.name={job},type=Warning"
        events = self._ask(self._core.list_namespaced_event, self._namespace, field_selector=about)["items"]
        return str(events[-1].get("message", "")) if events else ""

    def _ask(self, method: Callable[..., Any], *arguments: Any, **options: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._text(method, *arguments, **options))
        return answer

    def _text(self, method: Callable[..., Any], *arguments: Any, **options: Any) -> str:
        try:
            answer = method(*arguments, **options, _preload_content=False, _request_timeout=LIMIT_S)
        except ApiException as error:
            kind = _Gone if error.status == HTTPStatus.NOT_FOUND else LauncherError
            raise kind(f"Kubernetes: {_said(error)}") from error
        except HTTPError as error:
            raise LauncherError(f"Kubernetes: its API does not answer: {error}") from error
        return str(answer.data.decode(errors="replace"))


def _said(error: ApiException) -> str:
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return f"{error.status} {error.reason}"
