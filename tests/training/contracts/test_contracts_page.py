"""docs/contracts.md has the routes, exit codes and stages that are in use, made from their models.

`python -m tests.training.contracts.test_contracts_page` writes those parts anew.
"""

import re
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

from training.contracts import coordinator, policy_server
from training.contracts.route_types import Nothing, Route
from training.contracts.stage_names import STAGE_LABELS
from training.contracts.trainer_exit import ExitCode
from training.contracts.weight_requests import WEIGHTS_REQUEST

PAGE = Path(__file__).resolve().parents[3] / "docs" / "contracts.md"
SPELLED_OUT = {
    f"training.contracts.{name}"
    for name in ("coordinator", "policy_server", "trainer_reports", "weight_requests")
}
"""Models of these modules are written with their fields, others by their name."""


def fields_of(model: type[BaseModel], left_out: tuple[str, ...] = ()) -> str:
    found = [
        f"{name}{'' if field.is_required() else '?'}: {words(field.annotation)}"
        for name, field in model.model_fields.items()
        if name not in left_out
    ]
    return "{" + ", ".join(found) + "}"


def words(kind: Any, *, is_outermost: bool = False) -> str:
    """A type as the page writes it."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return words(parts[0], is_outermost=is_outermost)
    if origin is Literal:
        return " or ".join(map(str, parts))
    if origin in (Union, UnionType):
        return " or ".join(words(part, is_outermost=is_outermost) for part in parts)
    if origin in (list, tuple):
        each = parts[:1] if parts[-1] is ... else parts
        return "[" + ", ".join(map(words, each)) + "]"
    if origin is dict:
        return "{" + f"{words(parts[0])}: {words(parts[1])}" + "}"
    if kind is type(None):
        return "null"
    if kind is Nothing:
        return "{}"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(str(one.value) for one in kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return fields_of(kind) if is_outermost or kind.__module__ in SPELLED_OUT else kind.__name__
    return "any" if kind is Any else str(kind.__name__)


def request_of(route: Route[Any, Any]) -> str:
    if route.asks is WEIGHTS_REQUEST:
        return "a step of a weight sync"
    if isinstance(route.asks, type) and issubclass(route.asks, BaseModel):
        text = fields_of(route.asks, route.path_fields)
    else:
        text = words(route.asks, is_outermost=True)
    where = "query " if route.method == "GET" else ""
    asked = f"{where}`{text}`" if text != "{}" else ""
    return f"field `request` = {asked}; files {route.files}" if route.files else asked


def answer_of(route: Route[Any, Any]) -> str:
    return "" if route.answers is Nothing else f"`{words(route.answers)}`"


def routes_table(routes: tuple[Route[Any, Any], ...]) -> str:
    lines = ["| route | asks | answers | meaning |", "|---|---|---|---|"]
    for route in routes:
        cells = (str(route), request_of(route), answer_of(route), route.meaning)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def weight_steps() -> str:
    (union, *_) = get_args(coordinator.WEIGHTS.asks)
    steps = (get_args(part)[0] for part in get_args(union))
    lines = [f"- `{fields_of(step)}`: {step.__doc__}\n" for step in steps]
    return "".join(lines)


def exit_codes() -> str:
    said = {
        ExitCode.FINISHED: "all stages are done",
        ExitCode.WRONG_SETTINGS: "the config, a file or the environment is wrong; the message says which",
        ExitCode.PAUSED: "a checkpoint is saved; also after SIGTERM",
        ExitCode.CANCELLED: "people cancelled it",
    }
    return "".join(
        f"- {code.value} {code.name.lower().replace('_', ' ')}: {said[code]}\n" for code in ExitCode
    )


def stages() -> str:
    return "".join(f"- `{name}`: {label}\n" for name, label in STAGE_LABELS.items())


PARTS: dict[str, Callable[[], str]] = {
    "coordinator routes": lambda: routes_table(coordinator.ROUTES),
    "policy server routes": lambda: routes_table(policy_server.ROUTES),
    "weight sync": weight_steps,
    "exit codes": exit_codes,
    "stages": stages,
}


def part(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name}: .*? -->\n)(.*?)(<!-- /{name} -->)", re.DOTALL)


@pytest.mark.parametrize("name", PARTS)
def test_the_page_is_made_from_the_models(name: str) -> None:
    found = part(name).search(PAGE.read_text())
    assert found is not None, f"docs/contracts.md has no part <!-- {name}: ... -->"
    assert found[2] == PARTS[name](), "run python -m tests.training.contracts.test_contracts_page"


if __name__ == "__main__":
    text = PAGE.read_text()
    for name, make in PARTS.items():
        text = part(name).sub(lambda found, make=make: found[1] + make() + found[3], text)
    PAGE.write_text(text)
