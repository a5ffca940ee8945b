"""Columns for text that workers, desktops, models and services report: what is stored fits every database.

Such text may hold anything, and has no author who could mend it: it is cleaned (`storable`) and cut to the
column's length at the one place that every statement passes. Columns that people fill are Django's own, and
forms refuse what does not fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.expressions import BaseExpression

from webapp.lib.columns.storable_text import storable

ELLIPSIS = "…"

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    Text = models.Field[Any, Any]
else:
    Text = object


class _Reported(Text):
    """Cleans and cuts in `save`, `bulk_create`, `update` and `bulk_update`."""

    def stored(self, value: Any) -> Any:
        """What the column holds of it."""
        value = storable(value)
        if isinstance(value, str) and self.max_length is not None and len(value) > self.max_length:
            return value[: self.max_length - 1] + ELLIPSIS
        return value

    def get_db_prep_save(self, value: Any, connection: BaseDatabaseWrapper) -> Any:
        if not isinstance(value, BaseExpression):
            value = self.stored(value)
        return super().get_db_prep_save(value, connection)

    def deconstruct(self) -> Any:
        """As Django's own field: the table is the same."""
        name, _, args, kwargs = super().deconstruct()
        return name, f"django.db.models.{type(self).__name__.removeprefix('Reported')}", args, kwargs


class ReportedCharField(_Reported, models.CharField):
    """A short text, cut to `max_length` with an ellipsis."""


class ReportedTextField(_Reported, models.TextField):
    """A text of any length."""


class ReportedJSONField(_Reported, models.JSONField):
    """JSON whose strings are cleaned, at any depth."""


def stored_value(model: type[models.Model], name: str, value: Any) -> Any:
    """What a column holds after `value` was written to it."""
    field = model._meta.get_field(name)
    return field.stored(value) if isinstance(field, _Reported) else value
