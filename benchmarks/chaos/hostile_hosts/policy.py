"""A token of an env host at the policy server of an attempt that other hosts use, too."""

from __future__ import annotations

import ssl
from typing import Any

import httpx

from benchmarks.chaos.hostile_hosts.scene import Scene, attack
from workers.env.policy_client import PolicyClient, PolicyError


def client(scene: Scene, token: str) -> PolicyClient:
    return PolicyClient(scene.policy["url"], scene.policy[token], certificate=scene.policy["certificate"])


def turn(who: PolicyClient, trajectory: str, index: int) -> Any:
    return who.complete(
        trajectory, turn_index=index, text="Choose row 4.", screenshot=None, temperature=1.0, max_tokens=4
    )


def _raw(scene: Scene, method: str, path: str, body: dict[str, Any] | None = None) -> bool:
    trusting = ssl.create_default_context(cadata=scene.policy["certificate"])
    headers = {"Authorization": f"Bearer {scene.policy['own']}"}
    with httpx.Client(verify=trusting, trust_env=False, timeout=30) as line:
        return line.request(method, scene.policy["url"] + path, json=body, headers=headers).is_success


@attack("go on in another host's session", kind="policy", defence="a session is its opener's", stage="policy")
def go_on_in_anothers_session(scene: Scene, _: str) -> bool:
    turn(client(scene, "mate"), "read", 0)
    try:
        return bool(turn(client(scene, "own"), "read", 1).token_ids)
    except PolicyError:
        return False


@attack("read another host's turn", kind="policy", defence="a session is its opener's", stage="policy")
def read_anothers_turn(scene: Scene, _: str) -> bool:
    said = [turn(client(scene, "mate"), f"said{n}", 0) for n in range(3)]
    return [turn(client(scene, "own"), f"said{n}", 0) for n in range(3)] == said


@attack("end another host's session", kind="policy", defence="a session is its opener's", stage="policy")
def end_anothers_session(scene: Scene, _: str) -> bool:
    mate = client(scene, "mate")
    turn(mate, "end", 0)
    client(scene, "own").forget("end")
    try:
        return not turn(mate, "end", 1).token_ids
    except PolicyError:
        return True


@attack(
    "begin another host's session before it",
    kind="policy",
    defence="a session is its opener's",
    stage="policy",
)
def squat(scene: Scene, _: str) -> bool:
    own, mate = client(scene, "own"), client(scene, "mate")
    for index in range(2):
        turn(own, "squat", index)
    first = [turn(mate, "squat", 0) for _ in range(2)]
    return first[0] == turn(own, "squat", 0)


for _method, _path, _body in (
    ("POST", "/sleep", {}),
    ("POST", "/canary", {}),
    ("POST", "/eyes", {"is_whole": False}),
    ("GET", "/engine", None),
    ("POST", "/hosts/end", {"hosts": {"mate": 2**50}}),
):

    @attack(
        f"{_method} {_path} with a host's token",
        kind="policy",
        defence="policy routes of hosts",
        stage="policy",
    )
    def gpu_workers_route(
        scene: Scene, _: str, method: str = _method, path: str = _path, body: Any = _body
    ) -> bool:
        return _raw(scene, method, path, body)


@attack("a policy token of before it was revoked", kind="policy", defence="policy tokens end", stage="policy")
def token_of_before(scene: Scene, _: str) -> bool:
    try:
        return bool(turn(client(scene, "revoked"), "after", 0).token_ids)
    except PolicyError:
        return False


@attack(
    "a policy token that it wrote itself", kind="policy", defence="policy tokens are signed", stage="policy"
)
def forged_token(scene: Scene, _: str) -> bool:
    try:
        return bool(turn(client(scene, "forged"), "forged", 0).token_ids)
    except PolicyError:
        return False
