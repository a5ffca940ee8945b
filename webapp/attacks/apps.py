"""Has the dispatcher ask language models for attacks."""

from django.apps import AppConfig


class AttacksConfig(AppConfig):
    name = "webapp.attacks"

    def ready(self) -> None:
        from webapp.attacks.models import ModelAttack
        from webapp.dispatcher.work_kinds import WorkKind, register

        register(WorkKind("model attack", ModelAttack, "webapp.attacks.services.model_attacks.ask_model"))
