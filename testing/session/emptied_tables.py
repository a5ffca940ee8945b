"""Empties the tables after a test that commits: rows are deleted, under the locks that a TRUNCATE takes.

Django's own flush truncates every table, and makes content types and permissions anew: on PostgreSQL that is
most of the time of a quick test. Those two tables stay as the migrations left them.
"""

from functools import cache

from django.db import connection, transaction

KEPT = {"django_content_type", "auth_permission"}


@cache
def tables() -> tuple[str, ...]:
    names = set(connection.introspection.django_table_names(only_existing=True, include_views=False))
    return tuple(sorted(names - KEPT))


def empty_tables() -> None:
    """Waits for the transactions that still go on, as TRUNCATE does."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            quoted = ", ".join(f'"{name}"' for name in tables())
            cursor.execute(f"LOCK TABLE {quoted} IN ACCESS EXCLUSIVE MODE")
        having = (f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM \"{name}\")" for name in tables())
        cursor.execute(" UNION ALL ".join(having))
        for (name,) in cursor.fetchall():
            cursor.execute(f'DELETE FROM "{name}"')
