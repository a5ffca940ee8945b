"""Handmade Jobs and pods in Kubernetes' form, read; and the Job that is made of a PodTemplate."""

from typing import Any

import kubernetes_validate
import pytest
import yaml

from testing.private_installation import REPOSITORY
from webapp.dispatcher.launchers.contract import JobRequest, LauncherError, Phase
from webapp.dispatcher.launchers.kubernetes.job_manifest import job_manifest, require_usable
from webapp.dispatcher.launchers.kubernetes.job_states import cluster_job, failed_pod

MANIFEST = REPOSITORY / "deploy" / "kubernetes" / "gpu-jobs.yaml"
TEMPLATE: dict[str, Any] = next(
    one["template"] for one in yaml.safe_load_all(MANIFEST.read_text()) if one["kind"] == "PodTemplate"
)


def made(num_gpus: int = 1, num_nodes: int = 1) -> dict[str, Any]:
    wanted = JobRequest(experiment_id=7, attempt=2, num_gpus=num_gpus, num_nodes=num_nodes)
    return job_manifest(TEMPLATE, wanted, name="k8s-abc-7-2-ff", mark="abc", grace_s=100)


@pytest.mark.parametrize(("num_gpus", "num_nodes"), [(0, 1), (4, 1), (8, 3)])
def test_a_job_asks_for_what_its_placement_asks_for_and_fits_the_schemas(num_gpus: int, num_nodes: int):
    job = made(num_gpus, num_nodes)
    for version in ("1.33", "1.37"):
        kubernetes_validate.validate(job, version, strict=True)
    spec = job["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert container["resources"]["limits"].get("nvidia.com/gpu", 0) == num_gpus
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (num_nodes, num_nodes, 0)
    assert spec["completionMode"] == ("Indexed" if num_nodes > 1 else "NonIndexed")
    assert container["command"][-4:] == ["--job", "k8s-abc-7-2-ff", "7", "2"]
    assert {"name": "DESKHAND_STOP_GRACE_S", "value": "100"} in container["env"]
    assert "nvidia.com/gpu" in TEMPLATE["spec"]["containers"][0]["resources"]["limits"]  # not changed


def test_the_grace_for_a_checkpoint_has_to_fit_the_pods():
    require_usable(TEMPLATE, 105)
    with pytest.raises(LauncherError, match="DESKHAND_STOP_GRACE_S.*set at most 105, or raise"):
        require_usable(TEMPLATE, 106)
    with pytest.raises(LauncherError, match="no container named gpu-worker"):
        require_usable({"spec": {"containers": [{"name": "main"}]}}, 8)


def job(*conditions: dict[str, str], **metadata: str) -> dict[str, Any]:
    status = {"conditions": [{"status": "True", **one} for one in conditions]}
    return {"metadata": {"name": "j", **metadata}, "spec": made()["spec"], "status": status}


def pod(phase: str, name: str = "p", **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"phase": phase, **status}}


def ended(code: int, reason: str) -> list[dict[str, Any]]:
    return [{"state": {"terminated": {"exitCode": code, "reason": reason}}}]


UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
}
PULLING = [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'}}}]
TAKEN = {"type": "Failed", "reason": "PodFailurePolicy", "message": "Pod x has condition DisruptionTarget"}
LIMIT = {"type": "Failed", "reason": "BackoffLimitExceeded", "message": "Job has reached the backoff limit"}


@pytest.mark.parametrize(
    ("found", "pods", "phase", "state"),
    [
        (job(), [], Phase.WAITING, "Pending"),
        (job(), [pod("Pending")], Phase.WAITING, "Pending: being scheduled"),
        (
            job(),
            [pod("Pending", conditions=[UNSCHEDULABLE])],
            Phase.WAITING,
            "Pending: Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu",
        ),
        (
            job(),
            [pod("Pending", containerStatuses=PULLING)],
            Phase.WAITING,
            'Pending: ImagePullBackOff: Back-off pulling image "x"',
        ),
        (job(), [pod("Running")], Phase.RUNNING, "Running"),
        (job({"type": "Suspended"}), [pod("Running")], Phase.RUNNING, "Running"),
        (job({"type": "Complete"}), [pod("Succeeded")], Phase.DONE, "Complete"),
        (job(TAKEN), [], Phase.TAKEN, "Failed: Pod x has condition DisruptionTarget"),
        (job(LIMIT), [], Phase.TAKEN, "Failed: Job has reached the backoff limit"),
        (
            job(LIMIT),
            [pod("Failed", reason="DeadlineExceeded", containerStatuses=ended(0, "Completed"))],
            Phase.TAKEN,
            "Failed: Job has reached the backoff limit",
        ),
        (
            job(LIMIT),
            [pod("Failed", containerStatuses=ended(137, "OOMKilled"))],
            Phase.FAILED,
            "Failed: OOMKilled, exit code 137",
        ),
        (job(deletionTimestamp="2026-11-27T04:00:00Z"), [pod("Running")], Phase.STOPPED, "Deleted"),
    ],
)
def test_a_job_is_read_with_the_clusters_own_words(found, pods, phase, state):
    read = cluster_job(found, pods)
    assert (read.phase, read.state) == (phase, state)


def test_a_quota_and_a_queue_say_why_a_job_waits():
    quota = 'Error creating: pods "x" is forbidden: exceeded quota: gpus'
    assert cluster_job(job(), [], quota).state == f"Pending: {quota}"
    queued = job({"type": "Suspended", "message": "Not admitted by cluster queue"})
    queued["spec"]["suspend"] = True
    assert cluster_job(queued, []).state == "Suspended: Not admitted by cluster queue"
    assert cluster_job(queued, []).phase == Phase.WAITING


def test_the_log_that_says_why_is_the_failed_pods():
    assert failed_pod([pod("Succeeded", "a"), pod("Failed", "b")]) == "b"
    assert failed_pod([pod("Running")]) == ""
