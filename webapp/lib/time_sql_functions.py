"""Arithmetic with times that both databases do by themselves, without a call back into Python per row."""

from typing import Any

from django.db.models import BigIntegerField, FloatField, Func


class TimeBucket(Func):
    """Whole numbers that grow by one every `width_s` seconds since the epoch."""

    output_field = BigIntegerField()

    def __init__(self, column: str, width_s: int) -> None:
        super().__init__(column, width_s=width_s)

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "(CAST(strftime('%%%%s', %(expressions)s) AS INTEGER) / %(width_s)d)"
        return self.as_sql(compiler, connection, template=template, **context)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "(FLOOR(EXTRACT(EPOCH FROM %(expressions)s))::bigint / %(width_s)d)"
        return self.as_sql(compiler, connection, template=template, **context)


class EpochSeconds(Func):
    """Seconds since the epoch, to the millisecond."""

    output_field = FloatField()
    arity = 1

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "((julianday(%(expressions)s) - 2440587.5) * 86400.0)"
        return self.as_sql(compiler, connection, template=template, **context)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "EXTRACT(EPOCH FROM %(expressions)s)::float8"
        return self.as_sql(compiler, connection, template=template, **context)
