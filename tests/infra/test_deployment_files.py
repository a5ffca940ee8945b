"""deploy/kubernetes, deploy/systemd and deploy/slurm against their schemas and against the repository.

No cluster, service manager or SLURM runs on every machine that runs these tests, so the files are checked,
not started; docs/deploy.md says what was run.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import kubernetes_validate
import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands

from testing.private_installation import REPOSITORY
from tests.infra.test_compose import SERVICES, default_of
from webapp.dispatcher.launchers.kubernetes.job_manifest import require_usable
from webapp.dispatcher.launchers.kubernetes.launcher import RIGHTS

OLDEST_KUBERNETES = "1.33"
"""The first that runs a pod in a user namespace of its own without a switch."""
NEWEST_KUBERNETES = "1.37"
DEPLOY = REPOSITORY / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
APART = DEPLOY / "kubernetes" / "autoscaling"
"""Examples that are applied by themselves."""
RESOURCES = [
    resource
    for path in [*MANIFESTS, APART / "hpa.yaml"]
    if path.name != "kustomization.yaml"
    for resource in yaml.safe_load_all(path.read_text())
]


def template_of(resource: dict[str, Any]) -> dict[str, Any] | None:
    """Of its pods; None of a resource without any."""
    spec = resource.get("spec", {})
    spec = spec.get("jobTemplate", {}).get("spec", spec)
    return resource.get("template") or spec.get("template")


PODS = {one["metadata"]["name"]: found["spec"] for one in RESOURCES if (found := template_of(one))}
LABELS = {
    one["metadata"]["name"]: found["metadata"]["labels"] for one in RESOURCES if (found := template_of(one))
}
ALL_CONTAINERS = [
    container
    for spec in PODS.values()
    for container in [*spec.get("initContainers", []), *spec["containers"]]
]
OF_KUBERNETES_ALONE = {"migrated", "roles", "backup"}
"""They run commands of `manage.py` that no service of compose does."""
CONTAINERS = {one["name"]: one for one in ALL_CONTAINERS if one["name"] not in OF_KUBERNETES_ALONE}
"""By name: that of the service of compose which runs the same."""
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_every_resource_fits_the_schemas_of_kubernetes(resource):
    for version in (OLDEST_KUBERNETES, NEWEST_KUBERNETES):
        kubernetes_validate.validate(resource, version, strict=True)


def test_the_schema_finds_a_misspelt_field():
    wrong = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"port": []}}
    with pytest.raises(kubernetes_validate.ValidationError, match="port"):
        kubernetes_validate.validate(wrong, OLDEST_KUBERNETES, strict=True)


def test_the_kustomization_lists_every_manifest():
    kustomization = yaml.safe_load((DEPLOY / "kubernetes" / "kustomization.yaml").read_text())
    assert {*kustomization["resources"], "kustomization.yaml"} == {path.name for path in MANIFESTS}


def test_pods_run_what_compose_runs():
    images = {pod["image"] for spec in PODS.values() for pod in spec["containers"]}
    wanted = {default_of(service["image"]) for service in SERVICES.values() if "profiles" not in service}
    assert images == wanted


def test_containers_mount_only_volumes_that_they_have():
    for name, spec in PODS.items():
        here = {volume["name"] for volume in spec.get("volumes", [])} | {"postgres", "redis"}
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= here, name


@pytest.mark.parametrize("container", ALL_CONTAINERS, ids=lambda one: one["name"])
def test_a_container_names_what_it_takes_and_has_no_right_to_more(container):
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert {"cpu", "memory"} <= set(container["resources"]["requests"])
    assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("name", ["web", "dispatcher", "gpu-worker", "env-worker"])
def test_a_minute_without_the_database_ends_no_process(name):
    container = CONTAINERS[name]
    assert container["readinessProbe"] != container["livenessProbe"]
    live = str(container["livenessProbe"])
    assert "/livez" in live or int(re.findall(r"-lt (\d+)", live)[0]) >= 600


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("checkov") is None, reason="checkov is not installed")
def test_a_scanner_finds_nothing_but_what_is_explained():
    words = ["-d", DEPLOY / "kubernetes", "--config-file", DEPLOY / "checkov.yaml", "--skip-download"]
    found = subprocess.run(["checkov", *words], capture_output=True, text=True, timeout=170, check=False)
    assert found.returncode == 0, found.stdout


def test_the_services_that_stateful_sets_name_exist():
    named = {one["spec"]["serviceName"] for one in RESOURCES if one["kind"] == "StatefulSet"}
    assert named <= {one["metadata"]["name"] for one in RESOURCES if one["kind"] == "Service"}


def test_the_desk_host_gets_no_password():
    (deskhost,) = [one for one in PODS["desktops"]["containers"] if one["name"] == "deskhost"]
    assert "secretRef" not in str(deskhost)
    assert "secretKeyRef" not in str(deskhost)
    assert {one["name"] for one in deskhost["volumeMounts"]} == {"desk", "shm"}


SECRETS = {
    "web": {"deskhand-web"},
    "dispatcher": {"deskhand-web"},
    "prepare": {"deskhand-owner"},
    "backup": {"deskhand-owner"},
    "gpu-worker": {"deskhand-gpu"},
    "gpu-job": {"deskhand-gpu"},
    "desktops": {"deskhand-env"},
    "postgres": {"deskhand-stores"},
    "redis": {"deskhand-stores"},
}


def test_a_pod_has_the_secret_of_its_role_and_the_dispatcher_alone_a_token():
    made = set(
        re.findall(r"make (deskhand-\w+)$", (DEPLOY / "kubernetes" / "make-secrets").read_text(), re.M)
    )
    assert made == set().union(*SECRETS.values())
    for name, spec in PODS.items():
        found = {value["name"] for value in _references(spec, ("secretRef", "secretKeyRef"))}
        assert found == SECRETS[name], name
        assert spec["automountServiceAccountToken"] is False, name
        assert ("serviceAccountToken" in str(spec)) is (name == "dispatcher"), name


def _references(value: Any, kinds: tuple[str, ...]) -> Iterator[dict[str, str]]:
    if isinstance(value, list):
        for one in value:
            yield from _references(one, kinds)
    elif isinstance(value, dict):
        for key, one in value.items():
            if key in kinds:
                yield one
            else:
                yield from _references(one, kinds)


def test_every_pod_is_named_by_the_policies_that_let_it_reach_the_stores():
    (policy,) = [one for one in RESOURCES if one["metadata"]["name"] == "to-stores"]
    (selector,) = policy["spec"]["podSelector"]["matchExpressions"]
    assert set(selector["values"]) == {one["app"] for one in LABELS.values()} - {"postgres", "redis"}


def test_the_launchers_template_and_account_are_those_of_the_manifest():
    (template,) = [one for one in RESOURCES if one["kind"] == "PodTemplate"]
    assert f"deskhand/{template['metadata']['name']}" == settings.KUBERNETES_TEMPLATE
    (config,) = [one for one in RESOURCES if one["kind"] == "ConfigMap"]
    require_usable(template["template"], int(config["data"]["DESKHAND_STOP_GRACE_S"]))
    (role,) = [one for one in RESOURCES if one["kind"] == "Role"]
    granted = {
        (verb, group, resource)
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert granted == {(verb, group, f"{kind}/{sub}" if sub else kind) for verb, group, kind, sub in RIGHTS}


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_systemd_accepts_the_unit(unit, tmp_path):
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/opt/deskhand", str(REPOSITORY)))
    found = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_of_ours(unit):
    (line,) = re.findall(r"^ExecStart=(.*)$", unit.read_text(), re.MULTILINE)
    command = re.search(r"manage\.py (\S+)", line)
    assert command is None or command[1] in get_commands()


def test_the_script_of_env_hosts_is_one_and_runs_commands_of_ours():
    script = DEPLOY / "slurm" / "env-hosts.sbatch"
    subprocess.run(["bash", "-n", script], check=True)
    assert set(re.findall(r"manage\.py (\w+)", script.read_text())) <= set(get_commands())


def test_the_slurm_script_is_a_script_and_starts_the_gpu_worker_of_compose():
    script = DEPLOY / "slurm" / "gpu-worker.sbatch"
    subprocess.run(["bash", "-n", script], check=True)
    words = (DEPLOY / "gpu-worker.Dockerfile").read_text().rpartition("CMD ")[2]
    for flag in re.findall(r'"(--[^"]+|-Q|gpu)"', words):
        if not flag.startswith("--loglevel"):
            assert flag in script.read_text()
