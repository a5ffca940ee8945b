"""Scanners by name: shipped ones, and the versions that a team saved."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User

from webapp.accounts.models import Team
from webapp.accounts.services.team_versions import save_version
from webapp.lib.request_values import BadValue, check_plain
from webapp.scanners.definition_schemas import Definition, Rule, read_definition
from webapp.scanners.models import Scanner
from webapp.scanners.shipped import SHIPPED
from webapp.scanners.shipped_rules import RULES


@dataclass(frozen=True, slots=True)
class Known:
    """A scanner that a team can use."""

    key: str
    """As "loops.v1"."""
    title: str
    definition: Definition
    row: Scanner | None
    """None before its first scan."""


def known_scanners(team: Team) -> list[Known]:
    """Shipped ones first; one query."""
    rows = {str(row): row for row in team.scanners.all()}
    found = [
        Known(f"{name}.v1", one.title, one.definition, rows.pop(f"{name}.v1", None))
        for name, one in SHIPPED.items()
    ]
    return found + [_of_row(key, row) for key, row in rows.items()]


def get_known(team: Team, key: str) -> Known | None:
    """The one that "NAME.vVERSION" names; None when the team has no such one."""
    row = Scanner.named(team, key)
    if key.endswith(".v1") and (shipped := SHIPPED.get(key.removesuffix(".v1"))):
        return Known(key, shipped.title, shipped.definition, row)
    return _of_row(str(row), row) if row else None


def _of_row(key: str, row: Scanner) -> Known:
    return Known(key, row.note, read_definition(row.definition), row)


def save_scanner(*, team: Team, user: User, name: str, definition: object, note: str) -> Scanner:
    """The next version of `name`; older ones stay as they are. Raises BadValue."""
    check_plain(definition, "definition")
    read = read_definition(definition)
    if isinstance(read, Rule) and read.rule not in RULES:
        raise BadValue("rule", f"known ones: {', '.join(RULES)}")
    return save_version(
        Scanner,
        team=team,
        user=user,
        name=name,
        kind="scanner",
        note=note,
        first=2 if name in SHIPPED else 1,
        definition=read.model_dump(mode="json"),
    )


def row_of(team: Team, known: Known) -> Scanner:
    """The row that scans and findings of a scanner belong to, made for a shipped one at its first scan."""
    if known.row is not None:
        return known.row
    name = known.key.rpartition(".v")[0]
    definition = known.definition.model_dump(mode="json")
    row, _ = Scanner.objects.get_or_create(
        team=team, name=name, version=1, defaults={"definition": definition, "note": known.title[:300]}
    )
    return row
