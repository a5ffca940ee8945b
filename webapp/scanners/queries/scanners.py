"""Scanners by name: shipped ones, and the versions that a team saved."""

from dataclasses import dataclass

from webapp.accounts.models import Team
from webapp.scanners.definition_schemas import read_definition
from webapp.scanners.kinds.contract import Kind
from webapp.scanners.models import Scanner
from webapp.scanners.shipped import SHIPPED


@dataclass(frozen=True, slots=True)
class Known:
    """A scanner that a team can use."""

    key: str
    """As "loops.v1"."""
    title: str
    definition: Kind
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
