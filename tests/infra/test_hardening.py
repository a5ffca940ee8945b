"""What deployments may do: passwords out of command lines, networks closed, units with few rights."""

import json
import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from tests.infra.test_compose import DOCKERFILES, SERVICES, instructions
from tests.infra.test_deployment_files import DEPLOY, PODS, RESOURCES, UNITS
from webapp.lib.supervisor.ports import free_port
from webapp.lib.supervisor.redis_server import find_redis

SECRET = re.compile(r"(?i)password|secret|auth|token|_url\b")
POLICIES = [resource["spec"] for resource in RESOURCES if resource["kind"] == "NetworkPolicy"]
OURS = ("web", "dispatcher", "prepare", "backup", "gpu-worker", "gpu-job", "desktops")
TRAINERS = ("gpu-worker", "gpu-job")
HIGH = "1024-65535"


def containers():
    for name, service in SERVICES.items():
        yield f"compose-{name}", service
    for name, spec in PODS.items():
        for one in [*spec["containers"], *spec.get("initContainers", [])]:
            yield f"pod-{name}-{one['name']}", one


def what_is_run(container):
    """Everything that becomes a command line."""
    places = ("command", "args", "entrypoint", "healthcheck", "readinessProbe", "livenessProbe")
    return json.dumps([container.get(place) for place in places])


@pytest.mark.parametrize("name", dict(containers()))
def test_nothing_puts_a_secret_into_a_command_line(name):
    """Only a shell in the container may read one, from its environment."""
    command = what_is_run(dict(containers())[name])
    by_engine = re.findall(r"(?<!\$)\$[({](\w+)", command)
    assert [variable for variable in by_engine if SECRET.search(variable)] == []
    assert re.findall(r"--requirepass|--pass\b|--password|redis-cli[^\]]*-a\b", command) == []


def redis_scripts():
    (pod,) = PODS["redis"]["containers"]
    return {"compose": SERVICES["redis"]["command"][2].replace("$$", "$"), "pod": pod["command"][2]}


@pytest.mark.parametrize("name", redis_scripts())
def test_redis_starts_with_the_password_and_its_command_line_does_not_hold_it(name, tmp_path):
    programs, port, password = tmp_path / "bin", free_port(), "of-this-test-alone"
    programs.mkdir()
    (programs / "redis-server").symlink_to(find_redis())
    script = re.sub(r"redis-server( -)? (?=--)", rf"redis-server\1 --port {port} ", redis_scripts()[name])
    script = script.replace("/data", str(tmp_path))
    variables = {"PATH": f"{programs}:{os.environ['PATH']}", "REDISCLI_AUTH": password}
    log = (tmp_path / "log").open("wb")
    with subprocess.Popen(
        ["sh", "-c", script], cwd=tmp_path, env=variables, stdout=log, stderr=log
    ) as server:
        try:
            assert answer(port, "PING").startswith("-NOAUTH")
            assert answer(port, f"AUTH {password}", "CONFIG GET appendonly").endswith("yes\r\n")
            assert password not in Path(f"/proc/{server.pid}/cmdline").read_text()
        finally:
            server.terminate()


def answer(port, *commands):
    """What Redis says to the last of these; it may still be starting."""
    for attempt in range(100):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
                for command in commands:
                    client.sendall(f"{command}\r\n".encode())
                    said = client.recv(4096).decode()
                return said
        except ConnectionRefusedError:
            assert attempt < 99
            time.sleep(0.1)
    return ""


def test_the_secret_of_the_cluster_is_not_made_from_arguments():
    text = (DEPLOY / "kubernetes" / "make-secrets").read_text()
    assert "--from-literal" not in text
    assert "--from-env-file=/dev/stdin" in text


@pytest.mark.parametrize("name", PODS)
def test_no_pod_has_a_token_of_a_service_account(name):
    assert PODS[name]["automountServiceAccountToken"] is False


def selects(selector, app):
    return selector.get("matchLabels", {"app": app}) == {"app": app} and all(
        rule["operator"] == "In" and rule["key"] == "app" and app in rule["values"]
        for rule in selector.get("matchExpressions", [])
    )


def ports_of(app, direction, other):
    """Ports that policies open between an app and another; "any" where none selects it."""
    key, peers = {"Ingress": ("ingress", "from"), "Egress": ("egress", "to")}[direction]
    chosen = [one for one in POLICIES if selects(one["podSelector"], app) and direction in one["policyTypes"]]
    if not chosen:
        return {"any"}
    found = set()
    for rule in (rule for policy in chosen for rule in policy.get(key, []) if peers in rule):
        pods = [peer["podSelector"] for peer in rule[peers] if set(peer) == {"podSelector"}]
        if any(selects(pod, other) for pod in pods):
            found |= {
                "-".join(str(port[end]) for end in ("port", "endPort") if end in port)
                for port in rule["ports"]
            }
    return found


def test_pods_reach_each_other_where_they_have_to_and_nowhere_else():
    opened = {}
    for sender in PODS:
        for receiver in PODS:
            for direction, pair in (("Egress", (sender, receiver)), ("Ingress", (receiver, sender))):
                if ports := ports_of(pair[0], direction, pair[1]):
                    opened[direction, sender, receiver] = ports
    wanted = {
        (app, store): {port} for app in OURS for store, port in (("postgres", "5432"), ("redis", "6379"))
    }
    wanted |= {("web", "desktops"): {HIGH}}
    wanted |= {(app, trainer): {HIGH} for app in ("desktops", *TRAINERS) for trainer in TRAINERS}
    assert opened == {
        (direction, *pair): ports for pair, ports in wanted.items() for direction in ("Egress", "Ingress")
    }


def test_the_outside_is_reached_by_public_addresses_and_never_from_desktops():
    outside = [
        (policy["podSelector"], peer["ipBlock"], rule["ports"])
        for policy in POLICIES
        for rule in policy.get("egress", [])
        for peer in rule.get("to", [])
        if "ipBlock" in peer
    ]
    [(selector, block, ports)] = outside
    assert {app for app in PODS if selects(selector, app)} == {"web", "dispatcher", *TRAINERS}
    assert {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "127.0.0.0/8"} < set(
        block["except"]
    )
    assert ports == [{"port": 443}, {"port": 465}, {"port": 587}]


def test_the_dispatcher_alone_reaches_any_address_at_the_ports_of_the_clusters_api():
    [(selector, ports)] = [
        (policy["podSelector"], rule["ports"])
        for policy in POLICIES
        for rule in policy.get("egress", [])
        if "to" not in rule
    ]
    assert [app for app in PODS if selects(selector, app)] == ["dispatcher"]
    assert ports == [{"port": 443}, {"port": 6443}]


def test_pages_and_names_are_the_only_doors_to_other_namespaces():
    doors = {
        (json.dumps(peer["namespaceSelector"]["matchLabels"]), port["port"])
        for policy in POLICIES
        for rule in [*policy.get("ingress", []), *policy.get("egress", [])]
        for peer in rule.get("from", rule.get("to", []))
        for port in rule["ports"]
        if "namespaceSelector" in peer
    }
    assert doors == {
        ('{"deskhand-pages": "yes"}', 8700),
        ('{"kubernetes.io/metadata.name": "kube-system"}', 53),
    }


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda file: file.name)
def test_a_digest_can_be_given_for_every_base_image(dockerfile):
    froms = [line.split(" AS ") for line in instructions(dockerfile, "FROM")]
    ours = {stage for _, stage in froms}
    given = {re.fullmatch(r"\w+:\$\{(\w+)\}", base)[1] for base, _ in froms if base not in ours}
    assert given <= {line.partition("=")[0] for line in instructions(dockerfile, "ARG")}
    for name, service in SERVICES.items():
        if service.get("build", {}).get("dockerfile") == f"deploy/{dockerfile.name}":
            args = service["build"]["args"]
            assert {arg: args[arg].partition(":")[0] for arg in given} == {
                arg: f"${{{arg}_TAG" for arg in given
            }, name


def test_a_digest_can_be_given_for_every_image_of_the_cluster_and_of_compose():
    kustomization = yaml.safe_load((DEPLOY / "kubernetes" / "kustomization.yaml").read_text())
    names = {one["image"].partition(":")[0] for name, one in containers() if name.startswith("pod-")}
    assert {image["name"] for image in kustomization["images"]} == names
    for store in ("postgres", "redis"):
        assert re.fullmatch(rf"{store}:\$\{{{store.upper()}_TAG:-[\w.-]+\}}", SERVICES[store]["image"])


RIGHTS = ("NoNewPrivileges=yes", "PrivateTmp=yes", "ProtectSystem=strict")
OF_DESKTOPS = (
    "RestrictNamespaces",
    "ProtectKernel",
    "ProtectProc",
    "ProcSubset",
    "PrivateDevices",
    "PrivateUsers",
)


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_has_few_rights_and_writes_its_own_folders_only(unit):
    lines = unit.read_text().splitlines()
    assert [right for right in RIGHTS if right not in lines] == []
    assert "ReadWritePaths=/var/lib/deskhand /var/cache/deskhand" in lines
    assert {"StateDirectory=deskhand", "CacheDirectory=deskhand"} < set(lines)
    assert any("HOME=/var/cache/deskhand DESKHAND_DATA_DIR=/var/lib/deskhand" in line for line in lines)
    assert [line for line in lines if line.startswith(OF_DESKTOPS)] == [], "desktops need those"


IN_A_UNIT = """
mount --make-rprivate / && mount -t tmpfs tmpfs /tmp && mount --bind "$1" "$1" && mount -o remount,bind,ro /
chmod 1777 /tmp
exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs \
  bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp --bind "$1" "$1" \
  sh -c 'touch "$1/inside" /tmp/x && ! touch /opt/x 2>/dev/null && grep NoNewPrivs /proc/self/status' _ "$1"
"""
"""What these rights do to a process, without a service manager."""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("bwrap"), reason="needs root and bubblewrap")
def test_sandboxes_of_desktops_can_be_made_with_those_rights():
    folder = Path("/var/tmp") / f"unit-{os.getpid()}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    try:
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", IN_A_UNIT, "_", folder],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "NoNewPrivs:\t1\n"), done.stderr
        assert (folder / "inside").exists()
    finally:
        shutil.rmtree(folder)
