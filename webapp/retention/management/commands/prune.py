"""`manage.py prune`: do what the retention rules say now; `--dry-run` only says what would go."""

from typing import Any

from django.core.management.base import BaseCommand

from webapp.lib.byte_text import size_text
from webapp.retention.models import RetentionRule
from webapp.retention.queries.usage import summaries
from webapp.retention.services.frame_sizes import measure_frames
from webapp.retention.services.pruning import plan, prune

CHUNK = 1000


class Command(BaseCommand):
    help = "Delete turns and screenshots of trajectories that the retention rules let go."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only say what would go")

    def handle(self, *args: Any, **options: Any) -> None:
        while measure_frames(CHUNK):
            pass
        rules = list(RetentionRule.objects.select_related("team", "experiment"))
        if not rules:
            self.stdout.write("There is no rule: nothing goes. Admins make rules on the page Storage.")
        verb = "would go" if options["dry_run"] else "went"
        for found in summaries(rules, plan(rules) if options["dry_run"] else prune()):
            self.stdout.write(
                f"{found.rule}: {found.num_trajectories} trajectories, {found.num_frames} screenshots, "
                f"{size_text(found.num_bytes)} {verb} ({found.num_for_age} for their age)"
            )
