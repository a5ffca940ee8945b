"""Language models that are asked for attacks, as rows; the dispatcher starts a process for the next one.

queued -> asking -> finished | failed          finished: its scripts are queued as a group
"""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from pydantic import ValidationError

from training.contracts.types import Task
from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.attacks.model_attacker import MAX_TOKENS, messages_of, read_scripts
from webapp.attacks.models import MODEL_ATTACK_TRANSITIONS, OPEN, ModelAttack, ModelAttackStatus
from webapp.attacks.runs import queue_attackers
from webapp.dispatcher.child_work import BadEnd
from webapp.experiments.models import TaskRecord
from webapp.lib.chat.chat_model import ChatModel, chat_problems
from webapp.lib.chat.chat_server import ChatServer, ModelRefused, Said
from webapp.lib.request_values import BadValue
from webapp.lib.transitions import sources_of

LOST_AFTER = timedelta(minutes=15)
"""Four tries of two minutes, and the pauses between them, take less."""
TEMPERATURE = 0.7


@transaction.atomic
def ask_for_attacks(*, task: TaskRecord, team_id: int, user: User, chat: dict[str, str]) -> ModelAttack:
    """Have a model asked. Raises BadValue for an address or secret that the team may not use."""
    try:
        model = ChatModel.model_validate(chat)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadValue(str(first["loc"][0]), first["msg"].removeprefix("Value error, ")) from error
    if not model.url or not model.model:
        raise BadValue("model", "give the address of a server and the name of its model")
    _check_allowed(model, team_id)
    if ModelAttack.objects.filter(task=task, team_id=team_id, status__in=OPEN).exists():
        raise BadValue("model", "a model is being asked about this task already")
    row = ModelAttack.objects.create(team_id=team_id, task=task, owner=user, chat=model.model_dump())
    log_action(
        AuditAction.LAUNCHED, person=user, team=team_id, kind="model attack", object_id=row.pk, url=model.url
    )
    return row


def _check_allowed(model: ChatModel, team_id: int) -> None:
    for field, problem in chat_problems(model, Team.objects.get(pk=team_id).name):
        raise BadValue(field, problem)


def next_model_attack() -> int | None:
    """The oldest that waits. Those whose process died fail: asking twice would cost twice."""
    lost = ModelAttack.objects.filter(status=ModelAttackStatus.ASKING)
    for row in lost.filter(asked_at__lt=timezone.now() - LOST_AFTER):
        _end(row, ModelAttackStatus.FAILED, "The process that asked died; ask again.")
    waiting = ModelAttack.objects.filter(status=ModelAttackStatus.QUEUED)
    return waiting.order_by("pk").values_list("pk", flat=True).first()


def lose_model_attack(pk: int, end: BadEnd) -> None:
    """Its process ended badly. One that had not begun to ask waits for another, where that may help."""
    row = ModelAttack.objects.get(pk=pk)
    if row.status == ModelAttackStatus.ASKING or not end.may_pass:
        _end(row, ModelAttackStatus.FAILED, f"{end.why} Ask again.")


def run_model_attack(pk: int) -> None:
    """Ask, and queue what the model wrote."""
    rows = ModelAttack.objects.filter(pk=pk, status=ModelAttackStatus.QUEUED)
    if not rows.update(status=ModelAttackStatus.ASKING, asked_at=timezone.now()):
        return
    row = ModelAttack.objects.select_related("task", "team", "owner").get(pk=pk)
    try:
        _check_allowed(chat := ChatModel.model_validate(row.chat), row.team_id)
        said = _ask(chat, Task.model_validate(row.task.spec))
        attackers, problems = read_scripts(said.text)
        row.num_prompt_tokens, row.num_completion_tokens = said.num_prompt_tokens, said.num_completion_tokens
        if not attackers:
            raise BadValue("model", "; ".join(problems) or "it wrote no script")
        if row.owner is None:
            raise BadValue("model", "the person who asked has no account any more")
        with transaction.atomic():
            row.group = queue_attackers(row.task, row.team_id, row.owner, attackers)
            row.num_scripts = len(attackers)
            _end(row, ModelAttackStatus.FINISHED, "; ".join(problems))
    except (ModelRefused, BadValue) as refused:
        _end(row, ModelAttackStatus.FAILED, str(refused))


def _ask(chat: ChatModel, task: Task) -> Said:
    return ChatServer(chat).complete(messages_of(task), max_tokens=MAX_TOKENS, temperature=TEMPERATURE)


def _end(row: ModelAttack, to: ModelAttackStatus, message: str) -> None:
    rows = ModelAttack.objects.filter(pk=row.pk, status__in=sources_of(to, MODEL_ATTACK_TRANSITIONS))
    rows.update(
        status=to,
        message=message[:1000],
        group=row.group,
        num_scripts=row.num_scripts,
        num_prompt_tokens=row.num_prompt_tokens,
        num_completion_tokens=row.num_completion_tokens,
        ended_at=timezone.now(),
    )
