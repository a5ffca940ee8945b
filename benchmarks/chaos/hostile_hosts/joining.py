"""The door itself: tokens, names, identities, and what the port serves."""

from __future__ import annotations

import json

from benchmarks.chaos.hostile_hosts.scene import Scene, attack


def join(scene: Scene, token: str, name: str, *roles: str, version: str = "") -> bool:
    asked = {"token": token, "name": name, "roles": roles or ("env",), "version": version or scene.version}
    status, _ = scene.send("POST", "/hosts/join/", json.dumps(asked).encode())
    return status == 200


@attack("join with a token that was used", kind="joining", defence="tokens are good once")
def used_token(scene: Scene, _: str) -> bool:
    return join(scene, scene.tokens["used"], "evil-used")


@attack("join with a token of yesterday", kind="joining", defence="tokens end")
def old_token(scene: Scene, _: str) -> bool:
    return join(scene, scene.tokens["old"], "evil-old")


@attack("join for a role that the token lacks", kind="joining", defence="roles of a token")
def other_role(scene: Scene, _: str) -> bool:
    return join(scene, scene.tokens["env"], "evil-gpu", "env", "gpu")


@attack("join as a machine of the installation's own", kind="joining", defence="names of hosts")
def as_the_server(scene: Scene, _: str) -> bool:
    return join(scene, scene.tokens["env"], scene.names["server"])


@attack("join as the same in capitals", kind="joining", defence="names of hosts")
def as_the_server_in_capitals(scene: Scene, _: str) -> bool:
    return join(scene, scene.tokens["env"], scene.names["server"].upper())


@attack("join as a host that has joined", kind="joining", defence="names of hosts")
def as_a_joined_host(scene: Scene, _: str) -> bool:
    return join(scene, scene.tokens["env"], scene.names["mate"])


@attack("join with another version", kind="joining", defence="versions")
def other_version(scene: Scene, _: str) -> bool:
    return join(scene, scene.tokens["env"], "evil-version", version="0.0.1+00000000")


@attack("speak as another host with a guessed secret", kind="identity", defence="secrets")
def guessed_secret(scene: Scene, _: str) -> bool:
    own = scene.victims["mate"]["runnable_config"]
    return scene.ask("runnable_config", own, as_host=scene.names["mate"], secret="guessed")


@attack("report as another host with its own secret", kind="identity", defence="secrets")
def own_secret_of_another(scene: Scene, _: str) -> bool:
    stolen = scene.victims["mate"]["end_errored"]
    return scene.report("end_errored", stolen, as_host=scene.names["mate"], secret="its own")


@attack("go on after it was revoked", kind="identity", defence="revocation", stage="revoked")
def after_revocation(scene: Scene, _: str) -> bool:
    return scene.ask("runnable_config", scene.own["runnable_config"])


@attack("report after it was revoked", kind="identity", defence="revocation", stage="revoked")
def report_after_revocation(scene: Scene, _: str) -> bool:
    return scene.report("tell_start", scene.own["tell_start"])


for _path in ("/login/", "/admin/login/", "/api/v1/openapi.json", "/metrics"):

    @attack(f"the page {_path} at the port of hosts", kind="port", defence="routes of the port")
    def other_page(scene: Scene, _: str, path: str = _path) -> bool:
        status, body = scene.send("GET", path)
        return status < 400 or b"only for joined" not in body and b"serves joined hosts only" not in body


@attack("20 MB without an account", kind="port", defence="bodies of strangers")
def large_body_of_a_stranger(scene: Scene, _: str) -> bool:
    try:
        _, answer = scene.send("POST", "/hosts/reports/", b"x" * (20 << 20))
    except OSError:  # cut off while it sent
        return False
    return b"unknown_host" in answer  # the view says so, to which the whole body came
