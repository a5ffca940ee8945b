"""Has the dispatcher ask language models for attacks."""

from django.apps import AppConfig


class AttacksConfig(AppConfig):
    name = "webapp.attacks"

    def ready(self) -> None:
        from webapp.attacks.model_attacks import lose_model_attack, next_model_attack
        from webapp.dispatcher import child_work

        child_work.register(child_work.ChildWork("run_model_attack", next_model_attack, lose_model_attack))
