"""Language models that are asked for attacks, as rows of long work.

queued -> asking -> finished | failed          finished: its scripts are queued as a group
"""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction
from pydantic import ValidationError

from training.contracts.plain_errors import in_plain_words
from training.contracts.types import Task
from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.attacks.model_attacker import MAX_TOKENS, messages_of, read_scripts
from webapp.attacks.models import OPEN, ModelAttack, ModelAttackStatus
from webapp.attacks.services.scripted_runs import queue_attackers
from webapp.experiments.models import TaskRecord
from webapp.lib.chat.chat_server import ChatServer, ModelRefused, Said
from webapp.lib.chat.chat_settings import ChatModel, chat_problems
from webapp.lib.long_work import WorkRefused
from webapp.lib.request_values import BadValue

TEMPERATURE = 0.7


@transaction.atomic
def ask_for_attacks(*, task: TaskRecord, team_id: int, user: User, chat: dict[str, str]) -> ModelAttack:
    """Have a model asked. Raises BadValue for an address or secret that the team may not use."""
    try:
        model = ChatModel.model_validate(chat)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadValue(str(first["loc"][0]), in_plain_words(first["msg"])) from error
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


def ask_model(row: ModelAttack) -> Iterable[object]:
    """Ask once, and queue what the model wrote. Raises WorkRefused."""
    try:
        _ask_and_queue(row)
    except (ModelRefused, BadValue) as refused:
        raise WorkRefused(str(refused)) from refused
    return ()


def _ask_and_queue(row: ModelAttack) -> None:
    _check_allowed(chat := ChatModel.model_validate(row.chat), row.team_id)
    said = _ask(chat, Task.model_validate(row.task.spec))
    attackers, problems = read_scripts(said.text)
    row.beat(num_prompt_tokens=said.num_prompt_tokens, num_completion_tokens=said.num_completion_tokens)
    if not attackers:
        raise BadValue("model", "; ".join(problems) or "it wrote no script")
    if row.owner is None:
        raise BadValue("model", "the person who asked has no account any more")
    with transaction.atomic():
        group = queue_attackers(row.task, row.team_id, row.owner, attackers)
        num_scripts = len(attackers)
        row.end(ModelAttackStatus.FINISHED, "; ".join(problems)[:1000], group=group, num_scripts=num_scripts)


def _ask(chat: ChatModel, task: Task) -> Said:
    return ChatServer(chat).complete(messages_of(task), max_tokens=MAX_TOKENS, temperature=TEMPERATURE)
