"""Has the dispatcher run scans, and tells the live pages who may follow them."""

from django.apps import AppConfig


class ScannersConfig(AppConfig):
    name = "webapp.scanners"

    def ready(self) -> None:
        from webapp.dispatcher import child_work
        from webapp.live.stream_access import register_owned
        from webapp.scanners.models import Scan
        from webapp.scanners.scans import lose_scan, next_scan

        register_owned("scan", Scan)
        child_work.register(child_work.ChildWork("run_scan", next_scan, lose_scan))
