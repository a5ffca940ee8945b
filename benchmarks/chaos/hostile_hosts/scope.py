"""Roles, teams, scores, addresses: what a host does beyond what it was let in for."""

from __future__ import annotations

from functools import partial

from benchmarks.chaos.hostile_hosts.scene import ATTACKS, Attack, Scene, attack

OF_GPU_HOSTS = {
    "record_gpus": "an env host says that it has GPUs",
    "runnable_config": "an env host reads a training's config",
    "claim_attempt": "an env host claims an experiment",
    "beat_attempt": "an env host beats for an attempt",
    "answer_trainer": "an env host asks as a trainer",
}
OF_ENV_HOSTS = {
    "claim": "a gpu host claims a trajectory",
    "claim_mirror": "a gpu host mirrors desktops",
    "take_operations": "a gpu host takes operators' work",
    "grant_control": "a gpu host grants control of a desktop",
}
OF_THE_PAST = {
    "runnable_config": "read a config of the team it worked for before",
    "card_of": "read a model card of the team it worked for before",
    "claim": "claim a trajectory of a team that it does not work for",
    "take_away": "take away a trajectory of the team it worked for before",
    "beat_attempt": "beat for an attempt of the team it worked for before",
}


def _of_its_own(call: str, scene: Scene, _: str) -> bool:
    return scene.ask(call, scene.own[call])


def _add(names: dict[str, str], **values: object) -> None:
    for call, name in names.items():
        ATTACKS[name] = Attack(name=name, act=partial(_of_its_own, call), **values)  # type: ignore[arg-type]


_add(OF_GPU_HOSTS, kind="roles", defence="roles", roles=("env",))
_add(OF_ENV_HOSTS, kind="roles", defence="roles", roles=("gpu",))
_add(OF_THE_PAST, kind="teams", defence="the host's team", stage="works for another team")


@attack(
    "finish what it ran for another team",
    kind="teams",
    defence="the host's team",
    stage="works for another team",
)
def finish_of_the_past(scene: Scene, _: str) -> bool:
    return scene.report("finish", scene.own["finish"])


@attack("a reward of 1e308", kind="scores", defence="rewards by the config")
def forged_reward(scene: Scene, _: str) -> bool:
    scene.report("begin_evaluating", scene.own["begin_evaluating"])
    scene.report("finish", scene.own["finish"] | {"score": 0.0, "reward": 1e308})
    return False  # the row says which reward it got


@attack("a turn after the score", kind="scores", defence="scored is closed", stage="has finished")
def turn_after_the_end(scene: Scene, _: str) -> bool:
    return scene.report("open_turn", scene.own["open_turn"] | {"index": 5})


@attack("a second score", kind="scores", defence="scored is closed", stage="has finished")
def milestones_after_the_end(scene: Scene, _: str) -> bool:
    return scene.report("record_milestones", scene.own["record_milestones"])


for _url, _pem in (
    ("http://169.254.169.254", "PEM"),
    ("https://10.0.0.7", ""),
    ("file:///etc/passwd", "PEM"),
):

    @attack(f"a policy server at {_url}", kind="addresses", defence="policy servers by https")
    def policy_elsewhere(scene: Scene, _: str, url: str = _url, pem: str = _pem) -> bool:
        start = scene.own["start_attempt"] | {"policy_url": url, "policy_certificate": pem}
        return scene.ask("start_attempt", start)


for _place in ("unix:/run/redis.sock", "tcp:127.0.0.1:5432", "tcp:[::1]:22", "tcp:0.0.0.0:80"):

    @attack(f"a screen at {_place}", kind="addresses", defence="screens of the host")
    def screen_elsewhere(scene: Scene, _: str, place: str = _place) -> bool:
        return scene.report("open_screen", scene.own["open_screen"] | {"addresses": [place]})
