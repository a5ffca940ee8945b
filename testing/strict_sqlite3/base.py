"""SQLite that refuses what PostgreSQL refuses: too long texts, NUL, half surrogate pairs, great numbers.

SQLite holds all of them, so tests on it would pass with what fails in production. The rules are constraints
of the tables: they hold for every statement, also of other processes that open the same file.
"""

from typing import Any

from django.db.backends.sqlite3 import base

NO_NUL = """instr("%(column)s", char(0)) = 0"""
TEXT = NO_NUL
VARCHAR = f"""({NO_NUL} AND ('%(max_length)s' = 'None' OR length("%(column)s") <= '%(max_length)s' + 0))"""
HIGH, LOW = "[89abAB]", "[c-fC-F]"
HALVES = (
    # First halves that no second half follows: a string goes on with other characters, or with a quote.
    rf"*\u[dD]{HIGH}??[^\]*",
    rf"*\u[dD]{HIGH}??\[^u]*",
    rf"*\u[dD]{HIGH}??\u[^dD]*",
    rf"*\u[dD]{HIGH}??\u[dD][^c-fC-F]*",
    # Second halves behind anything but a first half.
    rf"*[^0-9a-fA-F]\u[dD]{LOW}*",
    rf"*[^0-9a-fA-F]?\u[dD]{LOW}*",
    rf"*[^89abAB]??\u[dD]{LOW}*",
    rf"*[^dD]???\u[dD]{LOW}*",
    rf"*[^u]????\u[dD]{LOW}*",
    rf"*[^\]?????\u[dD]{LOW}*",
)
# A backslash that is one takes two characters, and what stands behind it is no escape.
ESCAPES = r"""replace("%(column)s", '\\', '//')"""
ANY_HALF = " OR ".join(f"{ESCAPES} GLOB '{pattern}'" for pattern in HALVES)
JSON = (
    rf"""(instr("%(column)s", '\u0000') = 0 OR instr({ESCAPES}, '\u0000') = 0)"""
    rf""" AND NOT ("%(column)s" GLOB '*\u[dD][89a-fA-F]*' AND ({ANY_HALF}))"""
)


def _whole(least: int, most: int) -> str:
    return f'"%(column)s" BETWEEN {least} AND {most}'


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's, with these rules for columns."""

    data_type_check_constraints: dict[str, Any] = {
        **base.DatabaseWrapper.data_type_check_constraints,
        "SmallIntegerField": _whole(-(2**15), 2**15 - 1),
        "IntegerField": _whole(-(2**31), 2**31 - 1),
        "PositiveSmallIntegerField": _whole(0, 2**15 - 1),
        "PositiveIntegerField": _whole(0, 2**31 - 1),
        "CharField": VARCHAR,
        "SlugField": VARCHAR,
        "FileField": VARCHAR,
        "TextField": TEXT,
        "JSONField": f"({base.DatabaseWrapper.data_type_check_constraints['JSONField']}) AND {JSON}",
    }
