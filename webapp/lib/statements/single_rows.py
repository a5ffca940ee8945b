"""INSERT and UPDATE of rows whose statement is written once per process.

Django's compiler writes each statement anew, which takes several times as long as the database needs for it.
That is nothing for a page; what every turn of a thousand desktops reports goes through here. Columns are
named by their fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

from django.db import connection
from django.db.models import Field, Model
from django.utils import timezone

from webapp.lib.statements.short_statements import execute, first_row


def insert_row(model: type[Model], *, ignore_conflicts: bool = False, **values: Any) -> None:
    """A new row; columns that are not named get their defaults."""
    statement, rest = _insert(model, tuple(values), ignore_conflicts)
    defaults = [field.get_db_prep_save(_default(field), connection) for field in rest]
    execute(statement, [*_stored(model, values), *defaults])


def update_row(
    model: type[Model],
    found_by: Mapping[str, Any],
    *,
    add: Mapping[str, int] | None = None,
    returning: str = "id",
    **values: Any,
) -> Any:
    """Set columns of the row that `found_by` names, and raise others by `add` (NULL counts as 0).

    Returns its column `returning`. Raises the model's DoesNotExist.
    """
    added = add or {}
    statement = _update(model, tuple(found_by), tuple(added), tuple(values), returning)
    row = first_row(statement, [*_stored(model, values), *added.values(), *_stored(model, found_by)])
    if row is None:
        raise model.DoesNotExist(f"no {model._meta.verbose_name} has {dict(found_by)}")  # type: ignore[attr-defined]
    return row[0]


def update_each(
    model: type[Model], found_by: Mapping[str, Any], column: str, by: str, values: Mapping[Any, Any]
) -> None:
    """Set `column` of several of the rows that `found_by` names, each by its value of `by`."""
    pairs = [(*_stored(model, {by: key}), *_stored(model, {column: value})) for key, value in values.items()]
    rows = ", ".join(["(%s, %s)"] * len(pairs))
    table, (target, key, *where) = _table(model), _columns(model, [column, by, *found_by])
    conditions = " AND ".join([f"{table}.{key} = given.column1", *(f"{table}.{one} = %s" for one in where)])
    statement = (
        f"UPDATE {table} SET {target} = given.column2 FROM (VALUES {rows}) AS given WHERE {conditions}"
    )
    execute(statement, [*chain.from_iterable(pairs), *_stored(model, found_by)])


def marks(values: Sequence[Any]) -> str:
    """Placeholders of a statement for that many values."""
    return ", ".join(["%s"] * len(values))


@cache
def _insert(
    model: type[Model], names: Sequence[str], ignore_conflicts: bool
) -> tuple[str, list[Field[Any, Any]]]:
    """The statement, and the fields behind `names` that get their defaults."""
    given = {_field(model, name) for name in names}
    others = [field for field in model._meta.concrete_fields if field not in given]
    rest = [field for field in others if not (field.primary_key or field.generated)]
    columns = [*_columns(model, names), *map(_quoted, rest)]
    ending = " ON CONFLICT DO NOTHING" if ignore_conflicts else ""
    return f"INSERT INTO {_table(model)} ({', '.join(columns)}) VALUES ({marks(columns)}){ending}", rest


@cache
def _update(
    model: type[Model], found_by: Sequence[str], added: Sequence[str], named: Sequence[str], returning: str
) -> str:
    sets = [f"{column} = %s" for column in _columns(model, named)]
    sets += [f"{column} = COALESCE({column}, 0) + %s" for column in _columns(model, added)]
    where = " AND ".join(f"{column} = %s" for column in _columns(model, found_by))
    (answer,) = _columns(model, [returning])
    return f"UPDATE {_table(model)} SET {', '.join(sets)} WHERE {where} RETURNING {answer}"


def _default(field: Field[Any, Any]) -> Any:
    is_clock = getattr(field, "auto_now_add", False) or getattr(field, "auto_now", False)
    return timezone.now() if is_clock else field.get_default()


def _columns(model: type[Model], names: Iterable[str]) -> list[str]:
    return [_quoted(_field(model, name)) for name in names]


def _quoted(field: Field[Any, Any]) -> str:
    assert field.column, f"{field} has no column"
    return connection.ops.quote_name(field.column)


def _table(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _stored(model: type[Model], values: Mapping[str, Any]) -> list[Any]:
    """As the database takes them."""
    return [_field(model, name).get_db_prep_save(value, connection) for name, value in values.items()]


def _field(model: type[Model], name: str) -> Field[Any, Any]:
    field = model._meta.get_field(name)
    assert isinstance(field, Field), f"{name} is no field of {model}"
    return field
