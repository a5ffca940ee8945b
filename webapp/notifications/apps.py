"""Has the dispatcher look for what rules ask for, and send it; tells live pages who may read the log."""

from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "webapp.notifications"

    def ready(self) -> None:
        from webapp.accounts.models import Team
        from webapp.dispatcher import child_work, chores
        from webapp.live.stream_access import register_owned
        from webapp.notifications.outbox import Lookout, forget_old_deliveries, lose_delivery

        register_owned("notices", Team)
        child_work.register(
            child_work.ChildWork("deliver_notifications", Lookout().next_delivery, lose_delivery)
        )
        chores.register(forget_old_deliveries)
