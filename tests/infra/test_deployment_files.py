"""deploy/kubernetes, deploy/systemd and deploy/slurm against their schemas and against the repository.

No cluster, service manager or SLURM runs on every machine that runs these tests, so the files are checked,
not started; docs/deploy.md says what was.
"""

import re
import subprocess

import kubernetes_validate
import pytest
import yaml
from django.core.management import get_commands

from testing.private_installation import REPOSITORY
from tests.infra.test_compose import SERVICES, default_of

OLDEST_KUBERNETES = "1.33"
"""The first that runs a pod in a user namespace of its own without a switch."""
DEPLOY = REPOSITORY / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
RESOURCES = [
    resource
    for path in MANIFESTS
    if path.name != "kustomization.yaml"
    for resource in yaml.safe_load_all(path.read_text())
]
PODS = {
    resource["metadata"]["name"]: resource["spec"]["template"]["spec"]
    for resource in RESOURCES
    if "template" in resource.get("spec", {})
}
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_every_resource_fits_the_schema_of_kubernetes(resource):
    kubernetes_validate.validate(resource, OLDEST_KUBERNETES, strict=True)


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


def test_the_desk_host_gets_no_password():
    (deskhost,) = [one for one in PODS["desktops"]["containers"] if one["name"] == "deskhost"]
    assert "secretRef" not in str(deskhost)
    assert "secretKeyRef" not in str(deskhost)


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


def test_the_slurm_script_is_a_script_and_starts_the_gpu_worker_of_compose():
    script = DEPLOY / "slurm" / "gpu-worker.sbatch"
    subprocess.run(["bash", "-n", script], check=True)
    words = (DEPLOY / "gpu-worker.Dockerfile").read_text().rpartition("CMD ")[2]
    for flag in re.findall(r'"(--[^"]+|-Q|gpu)"', words):
        if not flag.startswith("--loglevel"):
            assert flag in script.read_text()
