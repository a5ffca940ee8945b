"""A real API server, scheduler and Job controller start a Job per attempt; stand-ins run pods as processes.

By the manifest's own PodTemplate, service account and Role, but for volumes, images and secrets.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from testing import watch_installation
from testing.experiment_runs import describe, launch
from testing.private_installation import REPOSITORY, Instance, InstanceFailed
from testing.watch_installation import rows

pytest.importorskip("kubernetes", reason="requirements/kubernetes.txt is not installed")
from kubernetes import client

from testing.private_kubernetes import MISSING, NAMESPACE, PrivateKubernetes, private_kubernetes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.desktop,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(
        bool(MISSING), reason=f"DESKHAND_TEST_KUBERNETES names no folder with {', '.join(MISSING)}"
    ),
]
wait_for = partial(watch_installation.wait_for, patience_s=400)
MANIFEST = REPOSITORY / "deploy" / "kubernetes" / "gpu-jobs.yaml"
CPU = 40
"""Of a node's 64: one Job at a time on each."""
CONFIG: dict[str, Any] = {
    "model": {"path": "tiny-random"},
    "tasks": {"families": ["note"]},
    "desktops": {"num_desktops": 2, "max_turns": 2, "retries": 3},
    "sampling": {"max_completion_tokens": 8},
    "algorithm": {"group_size": 2, "groups_per_step": 1, "num_steps": 8},
    "evaluation": {"num_tasks": 0},
    "checkpoints": {"every": 1, "max_restarts": 3},
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[PrivateKubernetes]:
    with private_kubernetes() as found:
        documents = [one for one in yaml.safe_load_all(MANIFEST.read_text()) if one["kind"] != "PodTemplate"]
        found.apply(*documents)
        yield found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all nodes see."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def deskhand(cluster: PrivateKubernetes, shared: Path) -> Iterator[Instance]:
    token = cluster.account_token("dispatcher")
    variables = {
        "DESKHAND_GPU_LAUNCHER": "kubernetes",
        "KUBECONFIG": str(cluster.kubeconfig(token, "dispatcher")),
        "DESKHAND_TRAIN_NETWORK": "lo",
        "DESKHAND_CHECKPOINT_DIRS": str(shared),
    }
    instance = Instance(slots=2, env_workers=1, without=["gpu"], env=variables)
    set_template(cluster, instance)
    with instance:
        instance.manage("import_tasks", "first-desk")
        yield instance


def set_template(cluster: PrivateKubernetes, deskhand: Instance, pod: Any = (), **variables: str) -> None:
    """The manifest's, for stand-in nodes; `pod`: more fields of the pod."""
    (template,) = [one for one in yaml.safe_load_all(MANIFEST.read_text()) if one["kind"] == "PodTemplate"]
    spec = template["template"]["spec"]
    spec.pop("volumes")
    spec.update(pod)
    (container,) = spec["containers"]
    container.pop("volumeMounts")
    container.pop("envFrom")
    container["resources"]["requests"]["cpu"] = str(CPU)
    own = {
        key: text for key, text in deskhand.environment.items() if key.startswith(("DESKHAND_", "DATABASE"))
    }
    own |= {"DJANGO_SETTINGS_MODULE": "webapp.settings", **variables}
    named = {one["name"] for one in container["env"]}
    container["env"] += [{"name": key, "value": text} for key, text in own.items() if key not in named]
    container["env"] = [one for one in container["env"] if one["name"] != "DESKHAND_POLICY_ADDRESS_LISTEN"]
    core = client.CoreV1Api(cluster.api())
    try:
        core.replace_namespaced_pod_template("gpu-job", NAMESPACE, template)
    except client.ApiException:
        core.create_namespaced_pod_template(NAMESPACE, template)


@contextmanager
def template(
    cluster: PrivateKubernetes, deskhand: Instance, pod: Any = (), **variables: str
) -> Iterator[None]:
    set_template(cluster, deskhand, pod, **variables)
    try:
        yield
    finally:
        set_template(cluster, deskhand)


def begin(deskhand: Instance, folder: Path, **sections: dict[str, Any]) -> int:
    file = folder / "config.yaml"
    config = {key: CONFIG.get(key, {}) | sections.get(key, {}) for key in {*CONFIG, *sections}}
    file.write_text(json.dumps(config))  # JSON is YAML
    return launch(deskhand, "--config", str(file))


def status(deskhand: Instance, number: int) -> tuple[str, str, int]:
    """(status, message, step)"""
    (found,) = rows(deskhand, f"select status, message, step from experiments_experiment where id = {number}")
    return found


def wait_until_idle(cluster: PrivateKubernetes) -> None:
    wait_for("an idle cluster", lambda: not [job for job in cluster.jobs() if job.status.active])


def wait_for_end(deskhand: Instance, number: int) -> dict[str, Any]:
    wait_for("the end", lambda: status(deskhand, number)[0] in ("finished", "failed"))
    described = describe(deskhand, number)
    assert described["status"] == "finished", described["message"]
    return described


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_the_api_server_takes_every_manifest(cluster: PrivateKubernetes):
    folder = str(MANIFEST.parent)
    command = ("kubectl", f"--kubeconfig={cluster.kubeconfig()}", "apply", "-k", folder, "--dry-run=server")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_an_experiment_is_preempted_queued_again_and_finished(
    cluster: PrivateKubernetes, deskhand: Instance, tmp_path: Path
):
    assert cluster.jobs() == []
    number = begin(deskhand, tmp_path)
    wait_for("a step in a Job", lambda: status(deskhand, number)[2] >= 1)
    with urgent_pods(cluster):
        waiting = wait_for("the next one's reason", lambda: pending(deskhand, number))
        assert "Unschedulable: 0/2 nodes are available: 2 Insufficient cpu" in waiting
    described = wait_for_end(deskhand, number)
    first, *_, last = described["attempts"]
    assert (first["status"], last["status"]) == ("paused", "finished")
    assert last["resumed_step"] >= 1
    wait_until_idle(cluster)


@contextmanager
def urgent_pods(cluster: PrivateKubernetes) -> Iterator[None]:
    """They take both nodes."""
    client.SchedulingV1Api(cluster.api()).create_priority_class(
        {"metadata": {"name": "urgent"}, "value": 1000}
    )
    core = client.CoreV1Api(cluster.api())
    resources = {"requests": {"cpu": str(CPU)}}
    for number in (1, 2):
        container = {"name": "sleep", "image": "x", "command": ["sleep", "900"], "resources": resources}
        spec = {"priorityClassName": "urgent", "restartPolicy": "Never", "containers": [container]}
        core.create_namespaced_pod(NAMESPACE, {"metadata": {"name": f"urgent{number}"}, "spec": spec})
    yield
    for number in (1, 2):
        core.delete_namespaced_pod(f"urgent{number}", NAMESPACE)


def pending(deskhand: Instance, number: int) -> str:
    now, message, _ = status(deskhand, number)
    return message if now == "queued" and "Insufficient" in message else ""


def test_a_limit_of_time_saves_a_checkpoint_and_the_next_job_goes_on(
    cluster: PrivateKubernetes, deskhand: Instance, tmp_path: Path
):
    number = begin(deskhand, tmp_path, algorithm={"num_steps": 40})
    wait_for("a step in a Job", lambda: status(deskhand, number)[2] >= 1)
    (live,) = [pod for pod in cluster.pods() if pod.status.phase == "Running"]
    over = {"spec": {"activeDeadlineSeconds": 1}}
    client.CoreV1Api(cluster.api()).patch_namespaced_pod(live.metadata.name, NAMESPACE, over)
    wait_for("the next attempt", lambda: len(describe(deskhand, number)["attempts"]) > 1)
    first, second = describe(deskhand, number)["attempts"][:2]
    assert first["status"] == "paused"
    assert second["resumed_step"] >= 1
    deskhand.manage("experiment", str(number), "cancel")
    wait_for("its end", lambda: status(deskhand, number)[0] == "cancelled")
    wait_until_idle(cluster)


def test_pause_and_a_deleted_job(cluster: PrivateKubernetes, deskhand: Instance, tmp_path: Path):
    number = begin(deskhand, tmp_path, algorithm={"num_steps": 40})
    wait_for("a step in a Job", lambda: status(deskhand, number)[2] >= 1)
    deskhand.manage("experiment", str(number), "pause")
    wait_for("a pause", lambda: status(deskhand, number)[0] == "paused")
    wait_until_idle(cluster)
    deskhand.manage("experiment", str(number), "resume")
    wait_for("a running attempt", lambda: status(deskhand, number)[0] == "running")
    (live,) = [job for job in cluster.jobs() if job.status.active]
    batch = client.BatchV1Api(cluster.api())
    batch.delete_namespaced_job(live.metadata.name, NAMESPACE, propagation_policy="Background")
    wait_for("a pause", lambda: status(deskhand, number)[0] == "paused")
    assert "was ended in the cluster (Deleted)" in status(deskhand, number)[1]
    wait_until_idle(cluster)


def test_a_job_that_dies_at_once_fails_with_its_last_lines(
    cluster: PrivateKubernetes, deskhand: Instance, tmp_path: Path
):
    with template(cluster, deskhand, DESKHAND_CPU_PLACES="many"):
        number = begin(deskhand, tmp_path)
        wait_for("its failure", lambda: status(deskhand, number)[0] == "failed")
    message = status(deskhand, number)[1]
    assert "Failed: Error, exit code 1" in message
    assert "DESKHAND_CPU_PLACES" in message
    wait_until_idle(cluster)


def test_two_nodes_train_as_an_indexed_job(
    cluster: PrivateKubernetes, deskhand: Instance, shared: Path, tmp_path: Path
):
    two = {"num_hosts": 2, "num_processes": 2}
    place = {"directory": str(shared)}
    steps = {"num_steps": 2}
    number = begin(deskhand, tmp_path, optimiser=two, algorithm=steps, checkpoints=place)
    described = wait_for_end(deskhand, number)
    assert [one["status"] for one in described["attempts"]] == ["finished"]
    (job,) = [one for one in cluster.jobs() if one.metadata.labels and one.spec.completions == 2]
    assert (job.spec.completion_mode, job.status.succeeded) == ("Indexed", 2)
    pods = [pod for pod in cluster.pods() if pod.metadata.name.startswith(job.metadata.name)]
    assert len({pod.spec.node_name for pod in pods}) == 2


def test_a_grace_that_does_not_fit_is_refused_at_start(cluster: PrivateKubernetes, deskhand: Instance):
    with (
        template(cluster, deskhand, {"terminationGracePeriodSeconds": 20}),
        pytest.raises(InstanceFailed, match="DESKHAND_STOP_GRACE_S.*set at most 5, or raise"),
    ):
        deskhand.manage("dispatch")
