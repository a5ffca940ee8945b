"""Say what this machine can do, what is missing and what to do about it."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.lib.supervisor.doctor import Finding, examine


class Command(BaseCommand):
    help = "Check Python, disk, database, Redis, assets, desktop programs, isolation and GPUs."

    def handle(self, *args: Any, **options: Any) -> None:
        findings = examine()
        for finding in findings:
            self.stdout.write(f"{word(finding):<5} {finding.name:<10} {finding.text}")
        if any(not finding.is_good and finding.is_needed for finding in findings):
            raise CommandError("something that Deskhand needs is missing; see the lines marked FAIL")


def word(finding: Finding) -> str:
    if finding.is_good:
        return "ok"
    return "FAIL" if finding.is_needed else "note"
