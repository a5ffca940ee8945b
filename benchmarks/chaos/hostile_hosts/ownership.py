"""Calls of a joined host about what others own: hosts of its team and of another one, the server itself."""

from __future__ import annotations

from functools import partial

from benchmarks.chaos.hostile_hosts.scene import ATTACKS, Attack, Scene, attack

WHOSE = "each argument's owner"
REPORTS = {
    "finish": "score another host's trajectory",
    "end_errored": "end another host's trajectory as errored",
    "end_cancelled": "cancel another host's trajectory",
    "begin_evaluating": "move another host's trajectory on",
    "open_turn": "add a turn to another host's trajectory",
    "close_turn": "rewrite a turn of another host's trajectory",
    "record_final_screen": "show another final screen",
    "record_checks": "write an evaluator's findings of another host",
    "record_milestones": "claim milestones for another host",
    "park": "park another host's trajectory",
    "open_screen": "open a screen in another host's name",
    "close_screen": "close the screen of another host",
    "note_draft_step": "say that another host did a step of a task",
    "note_draft_state": "write a state of another host's desktop",
    "record_snapshot": "say that another host kept a snapshot",
    "record_snapshot_problem": "say that another host kept none",
    "begin_anew": "end all that another worker runs",
    "end_finished": "declare another host's training finished",
    "end_crashed": "crash another host's training",
    "end_stopped": "stop another host's training",
    "end_incomplete": "call another host's gang incomplete",
    "cancel_groups": "call off the groups of another host's training",
    "tell_log": "write into the log of another host's training",
    "tell_start": "write the status line of another experiment",
    "take_report": "report metrics in another trainer's name",
}
REQUESTS = {
    "take_away": "take a desktop's trajectory away from another host",
    "unpark": "unpark another host's trajectory",
    "grant_control": "grant control of another host's desktop",
    "refresh_control": "read a person's control of another host's desktop",
    "active_control": "find who controls another host's desktop",
    "wanted_of_draft": "read what a person requests of another host's desktop",
    "read_ticket": "redeem another host's relay ticket",
    "claim_mirror": "become the mirror of another host",
    "record_host": "report for another host's desk host",
    "record_problem": "say that another desk host does not answer",
    "hand_over_mirror": "hand over another host's mirror",
    "take_operations": "take what operators asked of another host",
    "end_operation": "end an operation of another host",
    "stop_worker": "say goodbye for another worker",
    "record_gpus": "change the GPUs of another worker",
    "runnable_config": "read the config of another host's experiment",
    "beat_attempt": "read the state of another host's attempt",
    "answer_trainer": "ask in another trainer's name",
    "start_attempt": "become the policy server of another host's training",
    "record_copy": "vouch for another host's checkpoint copy",
    "forget_copy": "forget the copy of another host's checkpoint",
    "finish_export": "declare another host's export complete",
    "fail_export": "fail another host's export",
    "confirm_removal": "say that another host's export is removed",
    "card_of": "read the model card of another host's export",
}
INSIDE = {"read_ticket", "begin_anew"}
"""Checked by the call itself."""


def _report(call: str, scene: Scene, victim: str) -> bool:
    return scene.report(call, scene.victims[victim][call])


def _request(call: str, scene: Scene, victim: str) -> bool:
    return scene.ask(call, scene.victims[victim][call])


for _how, _calls in ((_report, REPORTS), (_request, REQUESTS)):
    for _call, _name in _calls.items():
        if _call not in INSIDE:
            ATTACKS[_name] = Attack(
                name=_name, kind="ownership", defence=WHOSE, act=partial(_how, _call), each_victim=True
            )


@attack("beat under another worker's name", kind="ownership", defence="names of workers", each_victim=True)
def beat_as_another(scene: Scene, victim: str) -> bool:
    return scene.ask("beat_worker", scene.victims[victim]["beat_worker"] | {"host": scene.name, "pid": 7})


@attack("a worker that is named as the server's", kind="ownership", defence="names of workers")
def beat_under_a_foreign_name(scene: Scene, _: str) -> bool:
    beat = scene.own["beat_worker"] | {"name": f"env9@{scene.names['server']}", "pid": 7}
    return scene.ask("beat_worker", beat)


@attack("run on another host's desktop", kind="ownership", defence="desktops' hosts", each_victim=True)
def use_anothers_desktop(scene: Scene, victim: str) -> bool:
    desktop = scene.victims[victim]["begin_running"]["desktop_id"]
    return scene.report("begin_running", scene.own["begin_running"] | {"desktop_id": desktop})


@attack("read a screenshot of another team", kind="ownership", defence="screenshots of own teams")
def read_a_screenshot(scene: Scene, _: str) -> bool:
    return scene.ask("read_screenshot", scene.victims["foreign"]["read_screenshot"])


@attack("claim a queued trajectory by its number", kind="tickets", defence="tickets", each_victim=True)
def claim_by_number(scene: Scene, victim: str) -> bool:
    queued = scene.victims[victim]["claim"]["trajectory_id"]
    return scene.ask("claim", scene.own["claim"] | {"trajectory_id": queued, "ticket": ""})


@attack("claim with a ticket of another trajectory", kind="tickets", defence="tickets")
def claim_with_its_own_ticket(scene: Scene, _: str) -> bool:
    queued = scene.victims["mate"]["claim"]["trajectory_id"]
    return scene.ask("claim", scene.own["claim"] | {"trajectory_id": queued})


@attack("claim with another host's ticket", kind="tickets", defence="tickets", each_victim=True)
def claim_with_a_stolen_ticket(scene: Scene, victim: str) -> bool:
    stolen = scene.victims[victim]["claim"]
    return scene.ask("claim", stolen | {"worker_name": scene.own["claim"]["worker_name"]})
