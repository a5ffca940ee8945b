"""Tells the live pages who may read a team's inbox and its imports; has the dispatcher read imports and
compare entries."""

from django.apps import AppConfig

MAX_IMPORT_MEMORY = 6 * 2**30
"""A small file may unpack to any size; then it fails, and nothing else of the machine does."""


class ReplayConfig(AppConfig):
    name = "webapp.replay"

    def ready(self) -> None:
        from webapp.accounts.models import Team
        from webapp.dispatcher import upkeep, work_kinds
        from webapp.live.stream_access import register_owned
        from webapp.replay.models import ReplayImport
        from webapp.replay.services.acceptance import apply_rules
        from webapp.replay.services.clusters import compare_waiting
        from webapp.replay.services.imports import forget_old_imports

        register_owned("inbox", Team)
        register_owned("import", ReplayImport)
        work_kinds.register(
            work_kinds.WorkKind(
                "import", ReplayImport, "webapp.replay.imports.run.read_file", max_memory=MAX_IMPORT_MEMORY
            )
        )
        upkeep.register(forget_old_imports)
        upkeep.register(compare_waiting)
        upkeep.register(apply_rules)
