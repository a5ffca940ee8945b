"""The Job of one attempt, from the operator's PodTemplate."""

from copy import deepcopy
from typing import Any

from webapp.dispatcher.launchers.contract import LEAVE_S, JobRequest, LauncherError

CONTAINER = "gpu-worker"
INSTALLATION_LABEL = "deskhand/installation"
KEPT_S = 24 * 3600
"""Ended Jobs and their logs stay in the cluster this long, unless the template says otherwise."""
USUAL_GRACE_S = 30
"""Kubernetes' own, of a pod that names none."""
USUAL_GPU = "nvidia.com/gpu"
TAKEN_AWAY = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
"""Preempted, evicted, drained: the Job then says so, and starts no second pod for the same attempt."""


def require_usable(template: dict[str, Any], grace_s: int) -> None:
    """Raise LauncherError for a PodTemplate that no Job can be made from."""
    pod = template.get("spec") or {}
    if not any(one["name"] == CONTAINER for one in pod.get("containers", [])):
        raise LauncherError(f"its PodTemplate has no container named {CONTAINER}")
    ends_in = pod.get("terminationGracePeriodSeconds", USUAL_GRACE_S)
    if ends_in < grace_s + LEAVE_S:
        raise LauncherError(
            f"DESKHAND_STOP_GRACE_S: {grace_s} s for a checkpoint and {LEAVE_S} s to leave are more than "
            f"terminationGracePeriodSeconds of the PodTemplate, {ends_in}; set at most "
            f"{max(ends_in - LEAVE_S, 0)}, or raise that one"
        )


def job_manifest(
    template: dict[str, Any], wanted: JobRequest, *, name: str, mark: str, grace_s: int
) -> dict[str, Any]:
    """A Job, or an Indexed Job for several nodes. Retries and restarts are Deskhand's own: it has none."""
    pod: dict[str, Any] = deepcopy({"metadata": template.get("metadata") or {}, "spec": template["spec"]})
    labels = {**(pod["metadata"].get("labels") or {}), INSTALLATION_LABEL: mark}
    pod["metadata"] = {"labels": labels, "annotations": pod["metadata"].get("annotations") or {}}
    pod["spec"]["restartPolicy"] = "Never"
    container = next(one for one in pod["spec"]["containers"] if one["name"] == CONTAINER)
    arguments = ["--job", name, str(wanted.experiment_id), str(wanted.attempt)]
    container["command"] = ["python", "-m", "workers.gpu.cluster_job", *arguments]
    container.pop("args", None)
    own = {"DESKHAND_GPU_LAUNCHER": "kubernetes", "DESKHAND_STOP_GRACE_S": str(grace_s)}
    kept = [one for one in container.get("env") or [] if one["name"] not in own]
    container["env"] = [*kept, *({"name": key, "value": value} for key, value in own.items())]
    _set_gpus(container, wanted.num_gpus)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "completions": wanted.num_nodes,
            "parallelism": wanted.num_nodes,
            "completionMode": "Indexed" if wanted.num_nodes > 1 else "NonIndexed",
            "ttlSecondsAfterFinished": KEPT_S,
            "podFailurePolicy": {"rules": [TAKEN_AWAY]},
            "template": pod,
        },
    }


def _set_gpus(container: dict[str, Any], number: int) -> None:
    """By the resource that the template names, such as amd.com/gpu."""
    resources = container.setdefault("resources", {})
    limits: dict[str, Any] = resources.get("limits") or {}
    name = next((key for key in limits if key.endswith("gpu")), USUAL_GPU)
    for part in ("limits", "requests"):
        resources[part] = {key: value for key, value in (resources.get(part) or {}).items() if key != name}
    if number:
        resources["limits"][name] = number
