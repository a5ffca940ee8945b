"""Queue an experiment from the command line: the launch page's button as a verb."""

import json
from pathlib import Path
from typing import Any

import yaml
from django.core.management.base import BaseCommand, CommandError

from training.contracts.config import ConfigError, ExperimentConfig, from_yaml, parse_config
from training.planning.presets import load_presets
from webapp.accounts.models import Team
from webapp.experiments.lifecycle.operator_actions import queue_experiment


class Command(BaseCommand):
    help = "Queue an experiment from a preset or a YAML file; prints its id as JSON."

    def add_arguments(self, parser: Any) -> None:
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("--preset", help="name of a preset, e.g. first-desk")
        source.add_argument("--config", type=Path, help="YAML file with a whole config")
        parser.add_argument("--name", default="", help="default: the preset's or file's name")
        parser.add_argument("--team", default="", help="default: the first team")
        parser.add_argument("--priority", type=int, default=0)
        parser.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="SECTION.FIELD=VALUE",
            dest="changes",
            help="change one knob, e.g. --set optimiser.seed=3",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        name, config = _starting_point(options["preset"], options["config"])
        try:
            config = parse_config(_changed(config, options["changes"]))
            experiment = queue_experiment(
                team=_team(options["team"]),
                owner=None,
                name=options["name"] or name,
                preset=options["preset"] or "",
                config=config,
                priority=options["priority"],
            )
        except ConfigError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps({"experiment": experiment.pk, "name": experiment.name}))


def _starting_point(preset: str | None, path: Path | None) -> tuple[str, ExperimentConfig]:
    if path is not None:
        try:
            return path.stem, from_yaml(path.read_text())
        except (OSError, ConfigError) as error:
            raise CommandError(f"{path}: {error}") from error
    presets = {known.name: known for known in load_presets()}
    if preset not in presets:
        raise CommandError(f"--preset: no preset {preset!r}; known: {', '.join(sorted(presets))}")
    return presets[preset].title, presets[preset].config


def _changed(config: ExperimentConfig, changes: list[str]) -> dict[str, Any]:
    values = config.model_dump(mode="json")
    for change in changes:
        path, equals, text = change.partition("=")
        *sections, field = path.split(".")
        if not equals or not sections:
            raise CommandError(f"--set {change}: write SECTION.FIELD=VALUE")
        target: Any = values
        for section in sections:
            target = target.get(section)
            if not isinstance(target, dict):
                raise CommandError(f"--set {change}: there is no section {section!r}")
        target[field] = yaml.safe_load(text)
    return values


def _team(name: str) -> Team:
    team = Team.objects.filter(name=name).first() if name else Team.objects.order_by("pk").first()
    if team is None:
        raise CommandError(f"--team: no team {name!r}" if name else "there is no team; run `make up` once")
    return team
