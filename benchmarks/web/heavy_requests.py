"""What one request of at most 1 MB may cost the server: every page and API operation, with bodies that hurt.

Each route gets each body (deep and long JSON and YAML, numbers of a million digits, thousands of fields and
keys, long texts and patterns, ...) from the admin of a team, who passes every check of rights; in process, so
that the time is this thread's own processor time and another program's load does not matter.

Bar: <= 1 s of processor time, <= 64 MB more memory than before, and an answer below 500, for every one.

    python -m benchmarks.web.heavy_requests [--only PATTERN]
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil

from benchmarks.report import finish, print_table

MAX_BYTES = 1_000_000
MAX_CPU_S, MAX_MB = 1.0, 64.0
QUERY_BYTES = 60_000
"""The server takes no longer line."""
NUM_WORST = 12
SAMPLE_S = 0.005
FIELDS = 900
"""Of a form: Django refuses a thousand."""


@dataclass(frozen=True)
class Body:
    """One thing to send."""

    name: str
    content: bytes
    content_type: str = "application/json"


def cut(text: str) -> bytes:
    return text.encode()[: MAX_BYTES - 1]


def json_bodies() -> Iterator[Body]:
    half = MAX_BYTES // 2 - 10
    yield Body("nested lists", cut("[" * half + "]" * half))
    yield Body("nested objects", cut('{"a":' * 160_000 + "1" + "}" * 160_000))
    yield Body("a number of a million digits", cut('{"number":' + "9" * (MAX_BYTES - 20) + "}"))
    yield Body("many numbers", cut('{"ids":[' + ",".join(["1e308"] * 160_000) + "]}"))
    yield Body("many keys", cut(json.dumps({f"k{number}": 1 for number in range(70_000)})))
    yield Body("one long text", cut(json.dumps({"name": "x" * (MAX_BYTES - 100)})))
    yield Body("escapes", cut('{"name":"' + "\\u0000" * 160_000 + '"}'))
    yield Body("many objects", cut("[" + ",".join(["{}"] * 330_000) + "]"))


def yaml_texts() -> dict[str, str]:
    aliases = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    return {
        "nested": "a: " + "[" * 400_000,
        "indented": "".join(f"{' ' * level}k:\n" for level in range(1300)),
        "aliases": aliases,
        "many keys": "".join(f"k{number}: 1\n" for number in range(60_000)),
        "long list": "a: [" + "1, " * 300_000 + "1]",
        "long number": "a: " + "9" * (MAX_BYTES - 200),
        "sexagesimal": "a: " + "1:" * 300_000 + "1",
        "long text": "a: '" + "x" * (MAX_BYTES - 200) + "'",
        "merges": "a: &a {b: 1}\n" + "".join(f"c{number}: {{<<: *a}}\n" for number in range(40_000)),
    }


def form_bodies(names: tuple[str, ...]) -> Iterator[Body]:
    kind = "application/x-www-form-urlencoded"
    share = (MAX_BYTES - 40 * len(names)) // len(names)
    for label, letter in (("long fields", "x"), ("fields of digits", "9"), ("fields of brackets", "[")):
        yield Body(label, cut(urlencode(dict.fromkeys(names, letter * (share // 3)))), kind)
    yield Body("many fields", cut(urlencode({f"f{number}": "1" for number in range(FIELDS)})), kind)
    yield Body("one field again and again", cut("&".join(["entry=1"] * FIELDS)), kind)
    for name, text in yaml_texts().items():
        value = cut(text)[: MAX_BYTES // 4].decode(errors="ignore")
        yield Body(f"YAML, {name}", urlencode({"yaml": value, "source": "yaml"}).encode(), kind)


def api_bodies() -> Iterator[Body]:
    yield from json_bodies()
    for name, text in yaml_texts().items():
        body = json.dumps({"name": "x", "yaml": cut(text)[: MAX_BYTES - 100].decode(errors="ignore")})
        yield Body(f"YAML, {name}", body.encode())


def queries(names: tuple[str, ...]) -> Iterator[str]:
    share = QUERY_BYTES // len(names) - 20
    for letter in ("9", "%25", "_", "x", "("):
        yield urlencode(dict.fromkeys(names, "@")).replace("%40", letter * (share // len(letter)))
    for name in ("q", "search", "name", "sort", "after", "cursor", "family"):
        for letter in ("9", "%25_", "a%20", "["):
            yield f"{name}=" + letter * (QUERY_BYTES // len(letter) - 20)


class Peak:
    """This process's highest memory inside the block, in MB above what it was before."""

    def __enter__(self) -> Peak:
        self._process = psutil.Process()
        self._before = self._highest = self._process.memory_info().rss
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(SAMPLE_S):
            self._highest = max(self._highest, self._process.memory_info().rss)

    def __exit__(self, *_: object) -> None:
        self._highest = max(self._highest, self._process.memory_info().rss)
        self._done.set()
        self._thread.join()

    @property
    def mb(self) -> float:
        return (self._highest - self._before) / 1e6


@dataclass(frozen=True)
class Request:
    """One request; `route` is its path with names in place of ids."""

    method: str
    route: str
    path: str
    body: Body


def page_requests(world: Any) -> Iterator[Request]:
    from testing.page_addresses import PATHS, address, field_names

    names = field_names()
    for route in PATHS:
        path = address(route, world)
        for body in [*form_bodies(names), *json_bodies()]:
            yield Request("POST", route, path, body)
        yield from get_requests(route, path, names)


def api_requests(world: Any) -> Iterator[Request]:
    from testing.page_addresses import field_names
    from webapp.api.urls import api

    values = {"wanted": "best", "sha256": world.paths["frame"], "name": world.paths["desktop"]}
    for route, operations in api.get_openapi_schema()["paths"].items():
        path = re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], "1"), route)
        for method in operations:
            if method == "get":
                yield from get_requests(route, path, field_names())
                continue
            for body in api_bodies():
                yield Request(method.upper(), route, path, body)


def get_requests(route: str, path: str, names: tuple[str, ...]) -> Iterator[Request]:
    for query in queries(names):
        yield Request("GET", route, f"{path}?{query}", Body(f"?{query[:20]}...", b""))


def measure(only: str) -> list[dict[str, Any]]:
    """Every request's cost. Needs Django set up."""
    from django.core.management import call_command

    from testing.web_world import make_world

    call_command("migrate", verbosity=0)
    world = make_world()
    wanted = (one for one in [*page_requests(world), *api_requests(world)] if re.search(only, one.route))
    return [cost(one, world.users["owner"]) for one in wanted]


def cost(one: Request, user: Any) -> dict[str, Any]:
    from django.test import Client

    client = Client(raise_request_exception=False, SERVER_NAME="localhost")
    client.force_login(user)
    with Peak() as peak:
        started = time.thread_time()
        answer = client.generic(one.method, one.path, one.body.content, content_type=one.body.content_type)
        for _ in answer if answer.streaming else ():
            pass
        cpu_s = time.thread_time() - started
    return {
        "request": f"{one.method} {one.route}",
        "body": one.body.name,
        "status": answer.status_code,
        "cpu_s": round(cpu_s, 3),
        "mb": round(peak.mb, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="routes that this pattern finds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="deskhand-heavy-") as folder:
        os.environ |= {
            "DESKHAND_DATA_DIR": folder,
            "DATABASE_URL": f"sqlite://{folder}/bench.sqlite3",
            "DJANGO_SETTINGS_MODULE": "webapp.settings",
        }
        Path(folder, "static").mkdir()
        import django

        django.setup()
        logging.disable(logging.CRITICAL)
        rows = measure(options.only)
    slow = [row for row in rows if row["cpu_s"] > MAX_CPU_S]
    large = [row for row in rows if row["mb"] > MAX_MB]
    broken = [row for row in rows if row["status"] >= 500 and row["status"] not in (503, 507)]
    worst = sorted(rows, key=lambda row: -row["cpu_s"])[:NUM_WORST]
    worst += [row for row in sorted(rows, key=lambda row: -row["mb"])[:NUM_WORST] if row not in worst]
    print_table(tuple(worst[0]), [tuple(row.values()) for row in [*broken, *worst]])
    figures = {
        "requests": len(rows),
        "routes": len({row["request"] for row in rows}),
        "slower_than_1_s": slow,
        "larger_than_64_mb": large,
        "broken": broken,
        "worst": worst,
    }
    print({name: len(value) if isinstance(value, list) else value for name, value in figures.items()})
    if options.only:
        return 0
    return finish("heavy_requests", figures, passed=not (slow or large or broken))


if __name__ == "__main__":
    sys.exit(main())
