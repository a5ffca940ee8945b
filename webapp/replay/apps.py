"""Tells the live pages who may read a team's inbox and its imports; has the dispatcher read imports and
compare entries."""

from django.apps import AppConfig


class ReplayConfig(AppConfig):
    name = "webapp.replay"

    def ready(self) -> None:
        from webapp.accounts.models import Team
        from webapp.dispatcher import child_work, chores
        from webapp.live.stream_access import register_owned
        from webapp.replay.curation.clusters import compare_waiting
        from webapp.replay.imports.jobs import forget_old_imports, lose_import, next_import
        from webapp.replay.models import ReplayImport

        register_owned("inbox", Team)
        register_owned("import", ReplayImport)
        child_work.register(child_work.ChildWork("read_import", next_import, lose_import))
        chores.register(forget_old_imports)
        chores.register(compare_waiting)
