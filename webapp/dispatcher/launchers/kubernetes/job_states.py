"""What the cluster says of a Job and of its pods, in its own words."""

from collections.abc import Iterable
from typing import Any

from webapp.dispatcher.launchers.contract import ClusterJob, Phase

TAKEN_REASONS = frozenset({"PodFailurePolicy", "DeadlineExceeded"})
"""Of a Job that failed: its only policy is `TAKEN_AWAY`, and a limit of time is the operator's."""
TAKEN_PODS = frozenset(
    {"DeadlineExceeded", "Evicted", "NodeLost", "NodeShutdown", "Preempting", "Terminated"}
)
LONGEST = 300


def cluster_job(job: dict[str, Any], pods: list[dict[str, Any]], warning: str = "") -> ClusterJob:
    """`warning`: the cluster's last event about a Job that has no pod."""
    name, met = job["metadata"]["name"], _met(job)
    if "Complete" in met or "SuccessCriteriaMet" in met:
        return ClusterJob(name, Phase.DONE, "Complete")
    if failed := met.get("Failed") or met.get("FailureTarget"):
        return _failed(name, failed, pods)
    if job["metadata"].get("deletionTimestamp"):
        return ClusterJob(name, Phase.STOPPED, "Deleted")
    if job["spec"].get("suspend"):
        return ClusterJob(
            name, Phase.WAITING, _words("Suspended", (met.get("Suspended") or {}).get("message"))
        )
    for pod in pods:
        if why := _why_pending(pod):
            return ClusterJob(name, Phase.WAITING, _words("Pending", why))
    if len(pods) < job["spec"].get("parallelism", 1):
        return ClusterJob(name, Phase.WAITING, _words("Pending", warning))
    return ClusterJob(name, Phase.RUNNING, "Running")


def _failed(name: str, condition: dict[str, Any], pods: list[dict[str, Any]]) -> ClusterJob:
    reasons = [pod["status"].get("reason", "") for pod in pods]
    is_taken = condition.get("reason") in TAKEN_REASONS or not TAKEN_PODS.isdisjoint(reasons)
    if is_taken or not pods:  # with its pods went what they wrote: a node left, or the cluster removed them
        words = _words("Failed", condition.get("message") or condition.get("reason"))
        return ClusterJob(name, Phase.TAKEN, words)
    return ClusterJob(name, Phase.FAILED, _words("Failed", next(filter(None, map(_why_failed, pods)), "")))


def failed_pod(pods: Iterable[dict[str, Any]]) -> str:
    """Name of the one whose log says why; "" without any."""
    names = [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Failed"]
    return names[0] if names else ""


def _met(resource: dict[str, Any]) -> dict[str, dict[str, Any]]:
    conditions = resource.get("status", {}).get("conditions") or []
    return {one["type"]: one for one in conditions if one["status"] == "True"}


def _why_pending(pod: dict[str, Any]) -> str:
    """ "" of a pod that runs or has ended."""
    status = pod.get("status", {})
    if status.get("phase") not in (None, "Pending"):
        return ""
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return _words(condition.get("reason", ""), condition.get("message"))
    for state in _container_states(status, "waiting"):
        return _words(state.get("reason", ""), state.get("message"))
    return "being scheduled"


def _why_failed(pod: dict[str, Any]) -> str:
    status = pod.get("status", {})
    if status.get("phase") != "Failed":
        return ""
    for state in _container_states(status, "terminated"):
        if state.get("exitCode"):
            return f"{state.get('reason') or 'Error'}, exit code {state['exitCode']}"
    return _words(status.get("reason", ""), status.get("message"))


def _container_states(status: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    found = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    return [one["state"][kind] for one in found if kind in (one.get("state") or {})]


def _words(state: str, reason: str | None) -> str:
    said = f"{state}: {reason}" if state and reason else state or reason or ""
    return said.strip().rstrip(".")[:LONGEST]
