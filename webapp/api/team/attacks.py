"""/tasks/.../attacks and /exploits: scripted runs against evaluators, and what they found."""

from datetime import datetime
from typing import Any, Literal

from ninja import Field, Router, Schema, Status

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.api.team.tasks import QueuedOut
from webapp.attacks.access import get_exploit, get_version
from webapp.attacks.models import Exploit
from webapp.attacks.services.model_attacks import ask_for_attacks
from webapp.attacks.services.scripted_runs import attack_fork, attack_task, check_version, dismiss_exploit
from webapp.attacks.task_exploits import Shown, standing_of
from webapp.trajectories.access import get_trajectory

router = Router(tags=["tasks"])


class ScriptedRunOut(Schema):
    """The newest try of one script on this version."""

    name: str
    result: str
    """running, right (an attack that was not paid, a success that was), wrong, errored, or moot (of a
    fork: the turns before it had done the task)."""
    trajectory_id: int


class ExploitOut(Schema):
    """A script that was paid without doing the task."""

    id: int
    name: str
    task_id: int
    """The version in which it was found first."""
    score: float
    found_at: datetime
    dismissed_why: str
    """Why a person says that it does the task; "" = no person does."""


class KnownExploitOut(ExploitOut):
    """With what it did on the version that was asked for."""

    run: ScriptedRunOut | None
    """Null: it was not done again there."""


class AskIn(Schema):
    """A language model that writes the attackers."""

    url: str = Field(max_length=300)
    """Of an OpenAI-compatible server, up to and with /v1."""
    model: str = Field(max_length=200)
    secret: str = Field("", max_length=64)
    """Name of the secret with its key; "" = the server asks for none."""


class AskedOut(Schema):
    """A model that was asked for attackers."""

    id: int
    status: str
    """queued, asking, finished or failed."""
    message: str
    num_scripts: int
    num_prompt_tokens: int
    num_completion_tokens: int


class AttacksOut(Schema):
    """How a version of a task stands."""

    counts: bool
    """As a patch: every known exploit is dead, every recorded success that was done again passes."""
    num_running: int
    attacks: list[ScriptedRunOut]
    asked: list[AskedOut]
    """Models that were asked for attackers, the newest first."""
    exploits: list[KnownExploitOut]
    successes: list[ScriptedRunOut]


class AttackIn(Schema):
    """What to queue: `attack` the evaluator, or `check` this version against what is known."""

    kind: Literal["attack", "check"] = "attack"


class ForkIn(Schema):
    """The first turn that is the attackers', from 0."""

    turn: int = Field(ge=0, le=100_000)


class DismissIn(Schema):
    """Why the script does the task; "" takes it back."""

    why: str = Field("", max_length=300)


def _run(shown: Shown) -> dict[str, Any]:
    return {"name": shown.run.name, "result": shown.result, "trajectory_id": shown.trajectory.pk}


def _exploit(exploit: Exploit) -> dict[str, Any]:
    return {name: getattr(exploit, name) for name in ExploitOut.model_fields}


@router.get("/tasks/{slug:name}/{int:pk}/attacks", response=AttacksOut, operation_id="show_attacks")
def show_attacks(request: MemberRequest, name: str, pk: int) -> Any:
    """What attacks on a version's evaluator found, and whether the version counts as a patch."""
    team = member(request).team
    found = standing_of(get_version(team, name, pk), team.pk)
    return {
        "counts": found.counts,
        "num_running": found.num_running,
        "asked": found.asked,
        "attacks": [_run(shown) for shown in found.attacks],
        "exploits": [
            {**_exploit(exploit), "run": _run(shown) if shown else None} for exploit, shown in found.exploits
        ],
        "successes": [_run(shown) for shown in found.successes],
    }


@router.post("/tasks/{slug:name}/{int:pk}/attacks", response={201: QueuedOut}, operation_id="start_attacks")
def start_attacks(request: MemberRequest, name: str, pk: int, body: AttackIn) -> Any:
    """Queue scripted runs on default desktops; their trajectories have purpose attack."""
    team = member(request, Role.OPERATOR).team
    begin = check_version if body.kind == "check" else attack_task
    group = begin(task=get_version(team, name, pk), team_id=team.pk, user=request.user)
    return Status(201, {"num_queued": group.size})


@router.post(
    "/tasks/{slug:name}/{int:pk}/attacks/model", response={201: AskedOut}, operation_id="ask_for_attacks"
)
def ask(request: MemberRequest, name: str, pk: int, body: AskIn) -> Any:
    """Have a language model write attackers, which then run; it is shown the evaluator, never the oracle."""
    team = member(request, Role.OPERATOR).team
    task = get_version(team, name, pk)
    asked = ask_for_attacks(task=task, team_id=team.pk, user=request.user, chat=body.model_dump())
    return Status(201, asked)


@router.post("/trajectories/{int:pk}/attacks", response={201: QueuedOut}, operation_id="attack_from_turn")
def attack_from_turn(request: MemberRequest, pk: int, body: ForkIn) -> Any:
    """Queue attackers that go on from the state that a machine had before a turn; 409 where none was kept."""
    trajectory = get_trajectory(request, pk, Role.OPERATOR)
    group = attack_fork(trajectory=trajectory, turn=body.turn, user=request.user)
    return Status(201, {"num_queued": group.size})


@router.post("/exploits/{int:pk}/dismiss", response=ExploitOut, operation_id="dismiss_exploit")
def dismiss(request: MemberRequest, pk: int, body: DismissIn) -> Any:
    """Say why a script is no exploit of its task; no version has to refuse it then."""
    exploit = get_exploit(request, pk, Role.OPERATOR)
    dismiss_exploit(exploit=exploit, user=request.user, why=body.why.strip())
    return exploit
