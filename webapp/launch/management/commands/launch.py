"""Queue an experiment from the command line: the launch page's button as a verb."""

import json
from pathlib import Path
from typing import Any

import yaml
from django.core.management.base import BaseCommand, CommandError
from pydantic import ValidationError

from training.contracts.config import (
    ConfigError,
    ExperimentConfig,
    laid_over,
    parse_config,
    read_yaml,
)
from training.planning.presets import load_presets
from webapp.accounts.models import Team
from webapp.experiments.queries.reward_presets import with_saved_terms
from webapp.experiments.services.experiments import queue_experiment
from webapp.experiments.sweep_plan import GREEDY, SweepPlan
from webapp.launch.preflight.run_preflight import run_preflight
from webapp.sweeps.search_space import parse_axes
from webapp.sweeps.services.sweeps import launch_sweep


class Command(BaseCommand):
    help = "Queue an experiment, or a sweep of many, from a preset or a YAML file; prints its id as JSON."

    def add_arguments(self, parser: Any) -> None:
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("--preset", help="name of a preset, e.g. first-desk")
        source.add_argument("--config", type=Path, help="YAML file with a whole config")
        parser.add_argument(
            "--with", type=Path, dest="laid_over", help="YAML file whose values are laid over the preset's"
        )
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
        parser.add_argument(
            "--anyway", action="store_true", help="queue it although the pre-flight says that it cannot run"
        )
        _add_sweep_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        name, values = _starting_point(options["preset"], options["config"])
        team = _team(options["team"])
        try:
            values = _laid_over(values, options["laid_over"])
            config = parse_config(with_saved_terms(_changed(values, options["changes"]), team))
            asked: dict[str, Any] = {
                "team": team,
                "owner": None,
                "name": options["name"] or name,
                "preset": options["preset"] or "",
                "config": config,
                "priority": options["priority"],
            }
            if not options["anyway"]:
                _require_good(config, team, asked["preset"])
            if options["axes"] or options["seeds"] > 1:
                sweep = launch_sweep(**asked, plan=_plan(config, options))
                launched = {"sweep": sweep.pk, "name": sweep.name, "experiments": sweep.plan.num_experiments}
            else:
                experiment = queue_experiment(**asked)
                launched = {"experiment": experiment.pk, "name": experiment.name}
        except ConfigError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(launched))


def _add_sweep_arguments(parser: Any) -> None:
    parser.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="SECTION.FIELD=VALUES",
        dest="axes",
        help='search over a knob: "optimiser.learning_rate=1e-6, 3e-6" or "...=1e-7 .. 1e-4 log"',
    )
    parser.add_argument("--seeds", type=int, default=1, help="experiments per arm of a sweep")
    parser.add_argument("--search", default="grid", help="of a sweep: grid, random or tpe")
    parser.add_argument("--arms", type=int, default=0, help="combinations tried; 0 = the whole grid")
    parser.add_argument("--metric", default=GREEDY, help="what arms are judged by")
    parser.add_argument("--minimise", action="store_true", help="lower values of the metric are better")
    parser.add_argument("--no-stop", action="store_true", help="let hopeless arms go on")


def _require_good(config: ExperimentConfig, team: Team, preset: str) -> None:
    """Raise CommandError with what the launch page's pre-flight would not let pass."""
    found = run_preflight(config, team=team, preset=preset)
    if not found.may_launch:
        bad = [check for check in found.checks if check.level == "bad"]
        problems = [f"{check.path or 'pre-flight'}: {check.title}. {check.detail}".strip() for check in bad]
        raise CommandError("\n".join(problems))


def _plan(config: ExperimentConfig, options: dict[str, Any]) -> SweepPlan:
    try:
        return SweepPlan(
            axes=parse_axes("\n".join(options["axes"]), config),
            search=options["search"],
            num_seeds=options["seeds"],
            num_arms=options["arms"],
            metric=options["metric"],
            direction="minimise" if options["minimise"] else "maximise",
            stop_hopeless=not options["no_stop"],
        )
    except ValidationError as error:
        raise CommandError(
            "; ".join(f"{item['loc'][0]}: {item['msg']}" for item in error.errors())
        ) from error


def _starting_point(preset: str | None, path: Path | None) -> tuple[str, dict[str, Any]]:
    """The name and the plain values of a config that has not been judged."""
    if path is not None:
        try:
            return path.stem, read_yaml(path.read_text())
        except (OSError, ConfigError) as error:
            raise CommandError(f"{path}: {error}") from error
    presets = {known.name: known for known in load_presets()}
    if preset not in presets:
        raise CommandError(f"--preset: no preset {preset!r}; known: {', '.join(sorted(presets))}")
    return presets[preset].title, presets[preset].config.model_dump(mode="json")


def _laid_over(values: dict[str, Any], path: Path | None) -> dict[str, Any]:
    if path is None:
        return values
    try:
        return laid_over(values, read_yaml(path.read_text()))
    except (OSError, ConfigError) as error:
        raise CommandError(f"--with {path}: {error}") from error


def _changed(values: dict[str, Any], changes: list[str]) -> dict[str, Any]:
    for change in changes:
        path, equals, text = change.partition("=")
        *sections, field = path.split(".")
        if not equals or not sections:
            raise CommandError(f"--set {change}: write SECTION.FIELD=VALUE")
        target: Any = values
        for section in sections:
            target = target.setdefault(section, {})
            if not isinstance(target, dict):
                raise CommandError(f"--set {change}: there is no section {section!r}")
        target[field] = yaml.safe_load(text)
    return values


def _team(name: str) -> Team:
    team = Team.objects.filter(name=name).first() if name else Team.objects.order_by("pk").first()
    if team is None:
        raise CommandError(f"--team: no team {name!r}" if name else "there is no team; run `make up` once")
    return team
