"""A node of Kubernetes that runs a pod's only container as a process of this machine.

It takes what the scheduler gave it, sends SIGTERM and, after the pod's grace, SIGKILL, and reports states,
exit codes and logs as a kubelet does. Images, volumes and limits it does not know.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from testing.servers.answering import Answer, Request, answering

LOOK_EVERY_S = 0.3


@dataclass
class Running:
    """A pod's process."""

    process: subprocess.Popen[bytes]
    log: Path
    began: float
    kill_at: float | None = None


class StandInNode:
    """Use as a context manager; at its end all its processes are killed."""

    def __init__(self, api: client.ApiClient, name: str, *, gpus: int, folder: Path) -> None:
        self.name = name
        self._core = client.CoreV1Api(api)
        self._gpus, self._folder = gpus, folder
        self._pods: dict[str, Running] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._running = ExitStack()

    def __enter__(self) -> Self:
        pair = _certificate(self._folder / f"{self.name}.pem")
        logs = self._running.enter_context(answering(partial(_log, self._folder), pair=pair))
        self._core.create_node(
            {"metadata": {"name": self.name, "labels": {"kubernetes.io/hostname": self.name}}}
        )
        room = {"cpu": "64", "memory": "64Gi", "pods": "20", "nvidia.com/gpu": str(self._gpus)}
        now = datetime.now(UTC).isoformat()
        ready = {"type": "Ready", "status": "True", "reason": "StandIn", "message": ""}
        ready |= {"lastHeartbeatTime": now, "lastTransitionTime": now}
        status = {
            "capacity": room,
            "allocatable": room,
            "conditions": [ready],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": urlsplit(logs).port}},
        }
        self._core.patch_node_status(self.name, {"status": status})
        self._core.patch_node(self.name, {"spec": {"taints": None}})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(30)
        for running in self._pods.values():
            _signal(running, signal.SIGKILL)
            running.process.wait()
        self._running.close()

    def _work(self) -> None:
        mine = f"spec.nodeName={self.name}"
        while not self._stopping.wait(LOOK_EVERY_S):
            for pod in self._core.list_pod_for_all_namespaces(field_selector=mine).items:
                with suppress(ApiException):  # changed meanwhile: it is looked at again
                    self._look_at(pod)

    def _look_at(self, pod: Any) -> None:
        key = pod.metadata.uid
        if pod.status.phase in ("Succeeded", "Failed"):
            if pod.metadata.deletion_timestamp:
                self._core.delete_namespaced_pod(
                    pod.metadata.name, pod.metadata.namespace, grace_period_seconds=0
                )
            return
        if key not in self._pods:
            if pod.metadata.deletion_timestamp:
                self._core.delete_namespaced_pod(
                    pod.metadata.name, pod.metadata.namespace, grace_period_seconds=0
                )
                return
            self._pods[key] = self._start(pod)
            self._report(pod, "Running", {"running": {"startedAt": datetime.now(UTC).isoformat()}})
        running = self._pods[key]
        if (code := running.process.poll()) is not None:
            _signal(running, signal.SIGKILL)
            state = {
                "exitCode": code if code >= 0 else 128 - code,
                "reason": "Error" if code else "Completed",
            }
            is_late = running.kill_at is not None and not pod.metadata.deletion_timestamp
            phase = "Failed" if code or is_late else "Succeeded"
            self._report(pod, phase, {"terminated": state}, "DeadlineExceeded" if is_late else None)
        elif pod.metadata.deletion_timestamp or _is_over(pod, running):
            if running.kill_at is None:
                grace_s = (
                    pod.metadata.deletion_grace_period_seconds or pod.spec.termination_grace_period_seconds
                )
                running.kill_at = time.monotonic() + grace_s
                os.kill(running.process.pid, signal.SIGTERM)
            elif time.monotonic() > running.kill_at:
                _signal(running, signal.SIGKILL)

    def _start(self, pod: Any) -> Running:
        (container,) = pod.spec.containers
        log = self._folder / f"{pod.metadata.namespace}_{pod.metadata.name}_{container.name}.log"
        environment = {one.name: _value(one, pod) for one in container.env or []}
        words = [*(container.command or []), *(container.args or [])]
        if words[0] == "python":
            words[0] = sys.executable
        with log.open("ab") as output:
            process = subprocess.Popen(
                words,
                env=os.environ | environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        return Running(process, log, time.monotonic())

    def _report(self, pod: Any, phase: str, state: dict[str, Any], reason: str | None = None) -> None:
        (container,) = pod.spec.containers
        is_ready = phase == "Running"
        one = {"name": container.name, "state": state, "ready": is_ready, "started": is_ready}
        one |= {"image": container.image, "imageID": "stand-in", "restartCount": 0}
        conditions = [{"type": "Ready", "status": str(is_ready)}]
        status = {
            "phase": phase,
            "reason": reason,
            "podIP": "127.0.0.1",
            "podIPs": [{"ip": "127.0.0.1"}],
            "conditions": conditions,
            "containerStatuses": [one],
        }
        body = {"status": status}
        self._core.patch_namespaced_pod_status(pod.metadata.name, pod.metadata.namespace, body)


def _is_over(pod: Any, running: Running) -> bool:
    """By the pod's own limit of time, which may be set while it runs."""
    limit_s = pod.spec.active_deadline_seconds
    return limit_s is not None and time.monotonic() - running.began > limit_s


def _signal(running: Running, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(running.process.pid, number)


def _value(variable: Any, pod: Any) -> str:
    if variable.value_from is None:
        return variable.value or ""
    path = variable.value_from.field_ref.field_path
    if path == "status.podIP":
        return "127.0.0.1"
    kind, _, rest = path.partition("['")
    table = pod.metadata.annotations if kind == "metadata.annotations" else pod.metadata.labels
    return str((table or {})[rest.removesuffix("']")])


def _log(folder: Path, request: Request) -> Answer:
    where = urlsplit(request.path)
    _, _, *parts = where.path.split("/")
    lines = (folder / f"{'_'.join(parts)}.log").read_bytes().splitlines(keepends=True)
    number = int(parse_qs(where.query).get("tailLines", ["0"])[0])
    return Answer(b"".join(lines[-number:]))


def _certificate(path: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "stand-in")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=2))
    signed = made.sign(key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return path
