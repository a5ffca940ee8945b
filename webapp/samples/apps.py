"""Samples as a Django application, for its command."""

from django.apps import AppConfig


class SamplesConfig(AppConfig):
    name = "webapp.samples"
