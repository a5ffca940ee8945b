"""Has the dispatcher run scans, and tells the live pages who may follow them."""

from django.apps import AppConfig


class ScannersConfig(AppConfig):
    name = "webapp.scanners"

    def ready(self) -> None:
        from webapp.dispatcher.work_kinds import WorkKind, register
        from webapp.live.stream_access import register_owned
        from webapp.scanners.models import Scan
        from webapp.scanners.services.scans import next_scan

        register_owned("scan", Scan)
        register(WorkKind("scan", Scan, "webapp.scanners.run.read_transcripts_of", find_next=next_scan))
