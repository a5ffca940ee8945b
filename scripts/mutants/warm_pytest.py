"""Runs pytest again and again in forks of one process that has loaded the libraries, and nothing of ours.

python -m scripts.mutants.warm_pytest    (in a copy of the tree)
<- {"tests": [...], "environment": {...}, "output": "FILE", "limit_s": 300}     one line each
-> {"status": 1, "seconds": 2.5}    status None: it took longer
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
import tempfile
import time
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

LIBRARIES = (
    "hypothesis.strategies", "numpy", "torch", "PIL.Image", "pydantic", "httpx", "aiohttp", "redis", "celery",
    "psutil", "django.db.models", "django.db.backends.sqlite3.base", "django.template", "yaml", "uvicorn",
    "transformers.models.qwen3_vl.modeling_qwen3_vl", "cryptography.x509", "schemathesis.graphql", "pyarrow",
    "playwright.sync_api",
)  # fmt: skip
"""Large, and none of them reads Django's settings when it is imported."""
OURS = frozenset({"training", "webapp", "workers"})
POLL_S = 0.05
OPTIONS = (
    "-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:unraisableexception", "-p",
    "scripts.mutants.kept_database",
)  # fmt: skip
"""Without what costs a second each time and only makes failures nicer to read."""


def main() -> None:
    for name in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)
    with tempfile.TemporaryDirectory() as nothing, redirect_stdout(StringIO()):
        pytest = importlib.import_module("pytest")  # loads its plugins
        pytest.main(
            ["-q", "--collect-only", "--assert=plain", "-c", os.devnull, "--rootdir", nothing, nothing]
        )
    if loaded := sorted(OURS & {name.partition(".")[0] for name in sys.modules}):
        raise RuntimeError(f"loaded before a change is planted, which no test would notice: {loaded}")
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        started = time.monotonic()
        status = run(request)
        print(json.dumps({"status": status, "seconds": round(time.monotonic() - started, 1)}), flush=True)


def run(request: dict[str, Any]) -> int | None:
    """pytest's exit status in a fork; None when it was killed after its limit."""
    child = os.fork()
    if child == 0:
        become_pytest(request)
    deadline = time.monotonic() + request["limit_s"]
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended or time.monotonic() > deadline:
            break
        time.sleep(POLL_S)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # also what a test left behind
    if ended:
        return os.waitstatus_to_exitcode(status)
    os.waitpid(child, 0)
    return None


def become_pytest(request: dict[str, Any]) -> None:
    """Does not return."""
    os.setsid()
    os.environ.update(request["environment"])
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in enumerate("rww"))
    sys.argv = ["pytest", *OPTIONS, *request["tests"]]
    sys.path.insert(0, str(Path.cwd()))
    pytest = importlib.import_module("pytest")
    try:
        sys.exit(pytest.main(sys.argv[1:]))
    finally:
        sys.stdout.flush()


if __name__ == "__main__":
    main()
