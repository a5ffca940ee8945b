"""What a config may ask of this installation: its executables, folders, addresses, secrets and other teams.

An operator writes configs; only the administrator, by settings and `manage.py grant_secret`, says what on the
machines they may touch. Checked where an experiment is queued, so that every way to launch is covered, and
again when an attempt begins.
"""

from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from training.contracts.config import (
    ConfigError,
    ExperimentConfig,
    GatewayConfig,
    OsworldConfig,
    parse_config,
)
from training.contracts.config.providers.gateway import VENDORS
from training.contracts.config.section import Problem
from training.outgoing.remote_addresses import RefusedAddress, check_url
from training.outgoing.secret_grants import GrantError, check_grant
from webapp.accounts.models import Team
from webapp.experiments.model_folders import model_folder
from webapp.experiments.models import CheckpointExport, CheckpointRecord, Experiment
from webapp.experiments.pinned_models import model_problems
from webapp.experiments.pinned_tasks import task_set_problems
from webapp.experiments.queries.reward_presets import saved_problems
from webapp.lib.request_values import row_id

SGLANG_ARGUMENTS = frozenset(
    {
        *("attention-backend", "chunked-prefill-size", "context-length", "cuda-graph-bs"),
        *(
            "cuda-graph-backend-prefill",
            "cuda-graph-max-bs",
            "disable-cuda-graph",
            "disable-overlap-schedule",
            "disable-radix-cache",
        ),
        *("enable-mixed-chunk", "enable-torch-compile", "kv-cache-dtype", "log-level"),
        *("max-prefill-tokens", "max-running-requests", "max-total-tokens", "mem-fraction-static"),
        *("mm-attention-backend", "num-continuous-decode-steps", "page-size", "quantization"),
        *("sampling-backend", "schedule-conservativeness", "schedule-policy"),
    }
)
"""Arguments of SGLang that change speed and memory; others load code, open ports or read files."""


def require_allowed(config: ExperimentConfig, team: Team) -> None:
    """Raise ConfigError naming every field that this installation does not allow to `team`."""
    if problems := dict(limit_problems(config, team)):
        raise ConfigError(problems)


def require_runnable(experiment: Experiment) -> ExperimentConfig:
    """The config of an experiment that an attempt may begin with now: a setting or a grant may have changed
    since it was queued, and another version of Deskhand may have stored it. Raises ConfigError."""
    config = parse_config(experiment.config)
    require_allowed(config, experiment.team)
    return config


def limit_problems(config: ExperimentConfig, team: Team) -> Iterator[Problem]:
    """(field, what to do) of everything that is not allowed."""
    section = config.desktops.provider_section
    if isinstance(section, OsworldConfig):
        yield from _osworld(section)
    if isinstance(section, GatewayConfig) and section.vendor not in (*VENDORS, *settings.GATEWAY_VENDORS):
        yield "desktops.gateway.vendor", _ask("DESKHAND_GATEWAY_VENDORS", section.vendor)
    yield from _remote_places(config, team)
    yield from _folder("checkpoints.directory", config.checkpoints.directory, settings.CHECKPOINT_DIRS)
    for argument in config.engine.extra_arguments:
        name = argument.lstrip("-").partition("=")[0]
        if name not in SGLANG_ARGUMENTS and name not in settings.SGLANG_ARGUMENTS:
            yield "engine.extra_arguments", _ask("DESKHAND_SGLANG_ARGUMENTS", name)
    yield from saved_problems(config.rewards, team)
    yield from task_set_problems(config.tasks, team)
    yield from model_problems(config, team)
    for field, path in (
        ("model.path", config.model.path),
        ("algorithm.reference_path", config.algorithm.reference_path),
    ):
        if (owner := _other_owner(path, team)) is not None:
            yield field, f"belongs to the team {owner}; use a checkpoint of your own team"


def _ask(variable: str, value: str) -> str:
    return f"{value} is not allowed here; an administrator lists it in {variable}"


def _osworld(section: OsworldConfig) -> Iterator[Problem]:
    if section.python and section.python not in settings.OSWORLD_PYTHONS:
        yield "desktops.osworld.python", _ask("DESKHAND_OSWORLD_PYTHONS", section.python)
    for name in ("checkout", "downloads"):
        yield from _folder(f"desktops.osworld.{name}", getattr(section, name), settings.OSWORLD_DIRS)
    if section.path_to_vm.startswith(("/", "~", ".")):
        yield from _folder("desktops.osworld.path_to_vm", section.path_to_vm, settings.OSWORLD_DIRS)
    for name in section.pass_variables:
        if name not in settings.OSWORLD_VARIABLES:
            yield "desktops.osworld.pass_variables", _ask("DESKHAND_OSWORLD_VARIABLES", name)
    if section.allow_host_code and not settings.ALLOW_HOST_CODE:
        yield "desktops.osworld.allow_host_code", "needs DESKHAND_ALLOW_HOST_CODE=1 of an administrator"


def _remote_places(config: ExperimentConfig, team: Team) -> Iterator[Problem]:
    """URLs that may not be asked, and secrets that may not go there."""
    section = config.desktops.provider_section
    where = f"desktops.{config.desktops.provider}"
    urls = section.addresses()
    for field, values in urls.items():
        for url in values:
            try:
                check_url(url, settings.REMOTE_NETWORKS)
            except RefusedAddress as refused:
                yield f"{where}.{field}", str(refused)
    sent_to = [url for values in urls.values() for url in values]
    for field, secret in section.secrets().items():
        try:
            if secret:
                check_grant(settings.SECRETS_DIR, secret=secret, team=team.name, urls=sent_to)
        except GrantError as refused:
            yield f"{where}.{field}", str(refused)


def _folder(field: str, text: str, allowed: list[Path]) -> Iterator[Problem]:
    if not text:
        return
    folder = Path(text).expanduser().resolve()
    if not any(folder == root or root in folder.parents for root in allowed):
        variable = "DESKHAND_CHECKPOINT_DIRS" if field.startswith("checkpoints") else "DESKHAND_OSWORLD_DIRS"
        yield field, f"{folder} is in no folder that {variable} of an administrator lists"


def _other_owner(path: str, team: Team) -> str | None:
    """Name of the other team whose experiment wrote what `path` names; None when it may be used."""
    folder = model_folder(path)
    if folder is None:
        return None
    parents = [str(parent) for parent in (folder, *folder.parents)]
    others = CheckpointRecord.objects.exclude(experiment__team=team).filter(path__in=parents)
    exports = CheckpointExport.objects.exclude(checkpoint__experiment__team=team).filter(path__in=parents)
    names = others.values_list("experiment__team__name", flat=True)
    name = names.first() or exports.values_list("checkpoint__experiment__team__name", flat=True).first()
    if name is not None:
        return name
    inside = _experiment_of(folder)
    owner = Experiment.objects.exclude(team=team).filter(pk=inside).select_related("team").first()
    return owner.team.name if inside and owner else None


def _experiment_of(folder: Path) -> int:
    """Number of the experiment in whose own folder it lies; 0 elsewhere."""
    root = settings.EXPERIMENTS_DIR.resolve()
    if root not in folder.parents:
        return 0
    return row_id(folder.relative_to(root).parts[0]) or 0
