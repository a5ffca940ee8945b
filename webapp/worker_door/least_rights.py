"""What web, env and gpu workers of a cluster may do in PostgreSQL and Redis, and the statements that say so.

Tables are named by app ("trajectories") or by model ("fleet.Worker"). A role reads and writes rows only where
it is named; the owner of the database alone changes tables.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import connection, models

PREFIX = "deskhand_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """Of one role; what it writes it may read."""

    writes: tuple[str, ...]
    reads: tuple[str, ...] = ()
    columns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Tables of which it reads these columns alone."""
    keys: tuple[str, ...] = ()
    """In Redis, by pattern."""
    channels: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


_FLEET = ("fleet.Worker", "fleet.Host")
_READ_BY_WORKERS = (
    *("accounts.Team", "attacks", "screens", "trajectories", "fleet.Desktop", "fleet.Operation"),
    *("experiments.Attempt", "experiments.CheckpointRecord", "experiments.Evaluation"),
    *("experiments.EvaluationTasks", "experiments.Experiment", "experiments.Stage"),
    *("experiments.TaskRecord", "experiments.TaskSet", "replay.ReplayEntry"),
)
_COLUMNS = (
    ("auth.User", ("id", "username")),
    ("fleet.JoinedHost", ("id", "host_id", "joined_at", "revoked_at", "team_id", "roles")),
)
_KEYS = ("_kombu.*", "unacked*", "deskhand:*", "*.reply.celery.pidbox")
"""Names of queues, jobs under way; pauses and slots of services; answers to Celery's own words."""
_CHANNELS = ("deskhand*", "/*.celery*", *(f"/{number}.celery.pidbox" for number in range(16)))
"""Events of pages, and Celery's words to workers: a pattern that is subscribed to must stand here itself."""
RIGHTS = {
    "web": Rights(
        writes=tuple(sorted(one.label for one in apps.get_app_configs())),
        keys=("*",),
        channels=("*",),
        commands=("+info",),
    ),
    "env": Rights(
        writes=(
            *("live", "trajectories", "screens", "attacks.ScriptedRun", *_FLEET),
            *("fleet.HostSample", "fleet.EndedMinute", "fleet.Desktop", "fleet.BootFailure"),
            *("fleet.Operation", "experiments.Experiment", "experiments.Incident"),
        ),
        reads=_READ_BY_WORKERS,
        columns=_COLUMNS,
        keys=("env*", *_KEYS),  # kombu has a list for each priority of a queue
        channels=_CHANNELS,
    ),
    "gpu": Rights(
        writes=(
            *("live", "trajectories.Group", "trajectories.Trajectory", "trajectories.TurnRecord", *_FLEET),
            *("experiments.AlarmRecord", "experiments.Attempt", "experiments.CheckpointExport"),
            *("experiments.CheckpointRecord", "experiments.Evaluation", "experiments.EvaluationTasks"),
            *("experiments.Experiment", "experiments.GangMember", "experiments.GpuSample"),
            *("experiments.Incident", "experiments.MetricPoint", "experiments.Stage"),
            *("replay.BufferSnapshot", "replay.ReplayEntry", "replay.ReplaySkipRecord"),
            *("replay.ReplayUseRecord", "replay.SnapshotEntry"),
        ),
        reads=(*_READ_BY_WORKERS, "replay.AdmissionPolicy", "replay.ImportedLine", "replay.ProcessLabel"),
        columns=_COLUMNS,
        keys=("gpu*", "env*", *_KEYS),  # its attempts send trajectories to env workers
        channels=_CHANNELS,
    ),
}


def tables(names: Iterable[str]) -> set[str]:
    """Of apps and models."""
    return {model._meta.db_table for name in names for model in _models(name)}


def _models(name: str) -> Iterator[type[models.Model]]:
    if "." in name:
        yield apps.get_model(name)
    else:
        yield from apps.get_app_config(name).get_models(include_auto_created=True)


def grants(role: str, rights: Rights) -> list[str]:
    """SQL for a role that exists; what it had before is taken back."""
    quote = connection.ops.quote_name
    name, writes = quote(role), tables(rights.writes)
    everything = "ALL TABLES IN SCHEMA public"
    said = [f"REVOKE ALL ON {everything} FROM {name}", f"GRANT SELECT ON django_migrations TO {name}"]
    for table in sorted(writes | tables(rights.reads)):
        said.append(f"GRANT SELECT ON {quote(table)} TO {name}")
    for table in sorted(writes):
        said.append(f"GRANT INSERT, UPDATE, DELETE ON {quote(table)} TO {name}")
    for label, columns in rights.columns:
        (table,) = tables([label])
        named = ", ".join(map(quote, columns))
        said.append(f"GRANT SELECT ({named}) ON {quote(table)} TO {name}")
    return said


def make_postgres_role(role: str, password: str, rights: Rights) -> None:
    """Make it, or give it its password and rights anew. The caller owns the tables and may make roles."""
    quote = connection.ops.quote_name
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
        verb = "ALTER" if cursor.fetchone() else "CREATE"
        options = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
        cursor.execute(f"{verb} ROLE {quote(role)} WITH {options} PASSWORD %s", [password])
        cursor.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        for statement in grants(role, rights):
            cursor.execute(statement)


def make_redis_user(client: Any, user: str, password: str, rights: Rights) -> None:
    client.acl_setuser(
        user,
        enabled=True,
        reset=True,
        passwords=[f"+{password}"],
        categories=["+@all", "-@admin", "-@dangerous"],
        commands=list(rights.commands),
        keys=list(rights.keys),
        channels=list(rights.channels),
    )
