from django.apps import AppConfig


class TrackersConfig(AppConfig):
    name = "webapp.trackers"
