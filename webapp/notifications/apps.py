"""Has the dispatcher look for what rules ask for, and send it; tells live pages who may read the log."""

from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "webapp.notifications"

    def ready(self) -> None:
        from webapp.accounts.models import Team
        from webapp.dispatcher import upkeep, work_kinds
        from webapp.live.stream_access import register_owned
        from webapp.notifications.models import Delivery
        from webapp.notifications.services import deliveries

        register_owned("notices", Team)
        work_kinds.register(
            work_kinds.WorkKind(
                "notification",
                Delivery,
                "webapp.notifications.send.send_due",
                find_next=deliveries.Lookout().next_delivery,
                on_death=deliveries.lose_delivery,
            )
        )
        upkeep.register(deliveries.forget_old_deliveries)
