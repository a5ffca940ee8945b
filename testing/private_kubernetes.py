"""A real API server, scheduler and Job controller of Kubernetes on this machine, with stand-ins for nodes.

DESKHAND_TEST_KUBERNETES names a folder with kube-apiserver, kube-controller-manager and kube-scheduler, as a
release of Kubernetes has them; etcd is there too, or Debian's `etcd-server`. Nodes: `testing.stand_in_node`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, utils
from urllib3.exceptions import HTTPError

from testing.stand_in_node import StandInNode
from webapp.lib.supervisor.ports import free_port

BINARIES = Path(os.environ.get("DESKHAND_TEST_KUBERNETES") or "/nonexistent")
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
ETCD = shutil.which("etcd", path=f"{BINARIES}:{os.environ.get('PATH', '')}")
MISSING = [name for name in PROGRAMS if not (BINARIES / name).exists()] + ([] if ETCD else ["etcd"])
UP_WITHIN_S = 90.0
ENDED_WITHIN_S = 20.0
TOKEN = "token-of-this-test"
NAMESPACE = "deskhand"
CONTROLLERS = (
    *("job-controller", "garbage-collector-controller", "ttl-after-finished-controller"),
    *("resourcequota-controller", "pod-garbage-collector-controller"),
)


@dataclass
class PrivateKubernetes:
    """As its administrator."""

    folder: Path
    url: str
    nodes: list[StandInNode] = field(default_factory=list)

    def api(self, token: str = TOKEN) -> client.ApiClient:
        """For calls by this token's owner."""
        settings = client.Configuration(host=self.url, api_key={"authorization": f"Bearer {token}"})
        settings.verify_ssl = False
        return client.ApiClient(settings)

    def kubeconfig(self, token: str = TOKEN, name: str = "admin") -> Path:
        """A file for programs that take one."""
        path = self.folder / f"{name}.kubeconfig"
        cluster = {"server": self.url, "insecure-skip-tls-verify": True}
        context = {"cluster": "here", "user": "me", "namespace": NAMESPACE}
        text = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "here", "cluster": cluster}],
            "users": [{"name": "me", "user": {"token": token}}],
            "contexts": [{"name": "here", "context": context}],
            "current-context": "here",
        }
        path.write_text(yaml.safe_dump(text))
        return path

    def apply(self, *documents: dict[str, Any]) -> None:
        """Make resources in the namespace."""
        for one in documents:
            utils.create_from_dict(self.api(), one, namespace=NAMESPACE)

    def account_token(self, account: str) -> str:
        """Of a service account there."""
        core = client.CoreV1Api(self.api())
        asked = {"spec": {"audiences": ["https://deskhand.test"], "expirationSeconds": 7200}}
        return str(core.create_namespaced_service_account_token(account, NAMESPACE, asked).status.token)

    def jobs(self) -> list[Any]:
        """Those of the namespace."""
        return list(client.BatchV1Api(self.api()).list_namespaced_job(NAMESPACE).items)

    def pods(self) -> list[Any]:
        """Those of the namespace."""
        return list(client.CoreV1Api(self.api()).list_namespaced_pod(NAMESPACE).items)


@contextmanager
def private_kubernetes(num_nodes: int = 2, gpus: int = 1) -> Iterator[PrivateKubernetes]:
    """Started, and ended with all that runs on it."""
    folder = Path(tempfile.mkdtemp(prefix="kubernetes-", dir="/tmp"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        found = PrivateKubernetes(folder, f"https://127.0.0.1:{free_port()}")
        _start_control_plane(found, stack)
        core = client.CoreV1Api(found.api())
        core.create_namespace({"metadata": {"name": NAMESPACE}})
        for number in range(num_nodes):
            node = StandInNode(found.api(), f"node{number + 1}", gpus=gpus, folder=folder)
            found.nodes.append(stack.enter_context(node))
        yield found


def _start_control_plane(cluster: PrivateKubernetes, stack: ExitStack) -> None:
    folder = cluster.folder
    store, peer = free_port(), free_port()
    (folder / "tokens.csv").write_text(f"{TOKEN},admin,1,system:masters\n")
    key = ("openssl", "genrsa", "-out", folder / "accounts.key", "2048")
    subprocess.run(key, check=True, capture_output=True)
    etcd = {
        "data-dir": folder / "etcd",
        "listen-client-urls": f"http://127.0.0.1:{store}",
        "advertise-client-urls": f"http://127.0.0.1:{store}",
        "listen-peer-urls": f"http://127.0.0.1:{peer}",
        "unsafe-no-fsync": "true",
    }
    assert ETCD is not None
    stack.enter_context(_running(folder, ETCD, etcd))
    server = {
        "etcd-servers": f"http://127.0.0.1:{store}",
        "bind-address": "127.0.0.1",
        "secure-port": cluster.url.rpartition(":")[2],
        "cert-dir": folder / "certificates",
        "token-auth-file": folder / "tokens.csv",
        "authorization-mode": "RBAC",
        "disable-admission-plugins": "ServiceAccount",
        "service-account-issuer": "https://deskhand.test",
        "service-account-key-file": folder / "accounts.key",
        "service-account-signing-key-file": folder / "accounts.key",
        "service-cluster-ip-range": "10.0.0.0/24",
    }
    stack.enter_context(_running(folder, BINARIES / "kube-apiserver", server))
    _wait_until_ready(cluster)
    common = {"kubeconfig": cluster.kubeconfig(), "leader-elect": "false", "secure-port": "0"}
    manager = {**common, "controllers": ",".join(CONTROLLERS)}
    stack.enter_context(_running(folder, BINARIES / "kube-controller-manager", manager))
    stack.enter_context(_running(folder, BINARIES / "kube-scheduler", common))


@contextmanager
def _running(folder: Path, program: str | Path, options: dict[str, Any]) -> Iterator[None]:
    arguments = [f"--{name}={value}" for name, value in options.items()]
    with (folder / f"{Path(program).name}.log").open("wb") as log:
        process = subprocess.Popen([program, *arguments], stdout=log, stderr=log, cwd=folder)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(cluster: PrivateKubernetes) -> None:
    deadline = time.monotonic() + UP_WITHIN_S
    while True:
        try:
            client.CoreV1Api(cluster.api()).read_namespace("kube-system")
        except (HTTPError, client.ApiException) as error:
            if time.monotonic() > deadline:
                raise TimeoutError((cluster.folder / "kube-apiserver.log").read_text()[-3000:]) from error
            time.sleep(0.5)
        else:
            return
