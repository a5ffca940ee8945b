"""What the installed DesktopEnv has: metrics, getters and setup steps, and the packages that each needs.

.venv-osworld/bin/python -m benchmarks.osworld.function_catalogue
"""

import dis
import json
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from workers.environments.osworld.child.missing_packages import PACKAGES, install, package_of

LIBRARY = "desktop_env."


def catalogue() -> dict[str, Any]:
    """{kind: [{name, module, needs: [package]}]} of setup, getters, metrics."""
    install()
    from desktop_env.controllers.setup import SetupController
    from desktop_env.evaluators import getters, metrics

    setup = {
        name.removeprefix("_").removesuffix("_setup"): function
        for name, function in vars(SetupController).items()
        if name.startswith("_") and name.endswith("_setup")
    }
    return {
        "setup": [entry(name, function) for name, function in sorted(setup.items())],
        "getters": [entry(name.removeprefix("get_"), function) for name, function in public(getters)],
        "metrics": [entry(name, function) for name, function in public(metrics)],
    }


def public(module: types.ModuleType) -> list[tuple[str, Callable]]:
    """Functions that a task can name, sorted."""
    return sorted((n, f) for n, f in vars(module).items() if isinstance(f, types.FunctionType))


def entry(name: str, function: Callable) -> dict[str, Any]:
    return {
        "name": name,
        "module": function.__module__.rpartition(".")[2],
        "needs": sorted({package_named(value) for value in used_values(function, set())} - {""}),
    }


def package_named(value: object) -> str:
    """PyPI name of the optional package that a global belongs to, installed or not; "" for any other."""
    own = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", "")
    root = str(own or type(value).__module__).partition(".")[0]
    return package_of(value) or PACKAGES.get(root, "")


def used_values(function: Callable, seen: set[Callable]) -> Iterator[object]:
    """What `function` and the functions of the library that it calls refer to, outside the library."""
    function = getattr(function, "__wrapped__", function)
    if function in seen:
        return
    seen.add(function)
    for name in names(function.__code__):
        value = function.__globals__.get(name, sys.modules.get(name))
        if isinstance(value, types.FunctionType) and value.__module__.startswith(LIBRARY):
            yield from used_values(value, seen)
        else:
            yield value


def names(code: types.CodeType) -> Iterator[str]:
    """Globals and modules that a function's code and its inner functions use; not its attributes."""
    yield from (i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "IMPORT_NAME"))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names(constant)


if __name__ == "__main__":
    json.dump(catalogue(), sys.stdout)
