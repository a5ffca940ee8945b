"""Save a team's scanners, version after version."""

from django.contrib.auth.models import User

from webapp.accounts.models import Team
from webapp.accounts.services.named_versions import save_version
from webapp.lib.request_values import check_plain
from webapp.scanners.definition_schemas import read_definition
from webapp.scanners.models import Scanner
from webapp.scanners.queries.scanners import Known
from webapp.scanners.shipped import SHIPPED


def save_scanner(*, team: Team, user: User, name: str, definition: object, note: str) -> Scanner:
    """The next version of `name`; older ones stay as they are. Raises BadValue."""
    check_plain(definition, "definition")
    read = read_definition(definition)
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


def ensure_row(team: Team, known: Known) -> Scanner:
    """The row that scans and findings of a scanner belong to, made for a shipped one at its first scan."""
    if known.row is not None:
        return known.row
    name = known.key.rpartition(".v")[0]
    definition = known.definition.model_dump(mode="json")
    row, _ = Scanner.objects.get_or_create(
        team=team, name=name, version=1, defaults={"definition": definition, "note": known.title[:300]}
    )
    return row
