"""Help as a Django application, for its tag."""

from django.apps import AppConfig


class HelpConfig(AppConfig):
    name = "webapp.help"
