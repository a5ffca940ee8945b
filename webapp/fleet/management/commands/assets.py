"""Collect the front-end files, when any of them changed."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from webapp.lib.static_files.npm_assets import PACKAGES, AssetsMissing, installed_version
from webapp.lib.supervisor.before_start import collect_assets


class Command(BaseCommand):
    help = "Collect the front-end files into the data folder (npm packages, our own, Django's)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--force", action="store_true", help="also when nothing changed")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            changed = collect_assets(force=options["force"])
            versions = [f"{package.name} {installed_version(package.name)}" for package in PACKAGES]
        except AssetsMissing as error:
            raise CommandError(str(error)) from error
        self.stdout.write(", ".join(versions))
        self.stdout.write(f"{'collected into' if changed else 'nothing changed in'} {settings.STATIC_ROOT}")
