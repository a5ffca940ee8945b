"""The family of an experiment: those that it was cloned or continued from, and those that came from it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from webapp.experiments.models import CheckpointRecord, Experiment
from webapp.experiments.queries.checkpoints import MODEL_FOLDER

MAX_NODES = 40
"""Experiments on the page; more are counted."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Where an experiment came from."""

    child: int
    parent: int
    is_clone: bool
    checkpoint: tuple[int, int] | None = None
    """(experiment, step) whose saved weights it began with."""


@dataclass(frozen=True, slots=True)
class Node:
    pk: int
    depth: int
    edge: Edge | None
    """None for the first ancestor."""


def edges_of(team_id: int) -> list[Edge]:
    """Every experiment of the team that trains and came from another: two queries."""
    rows = list(
        Experiment.objects.filter(team_id=team_id, evaluates=None)
        .order_by("pk")
        .values_list("pk", "cloned_from_id", "model_path")
    )
    saved = _checkpoints_at({_folder(path) for _, _, path in rows})
    known = {pk for pk, _, _ in rows}
    edges = []
    for pk, origin, path in rows:
        checkpoint = saved.get(_folder(path))
        if checkpoint and checkpoint[0] == pk:
            checkpoint = None
        parent = origin or (checkpoint[0] if checkpoint else None)
        if parent in known and parent is not None and parent < pk:
            edges.append(Edge(pk, parent, origin is not None, checkpoint))
    return edges


def _folder(path: str | None) -> str:
    return (path or "").rstrip("/").removesuffix(f"/{MODEL_FOLDER}")


def _checkpoints_at(paths: Iterable[str]) -> dict[str, tuple[int, int]]:
    folders = [path for path in paths if "/" in path]
    rows = CheckpointRecord.objects.filter(path__in=folders).order_by("pk") if folders else []
    return {row.path: (row.experiment_id, row.step) for row in rows}


def family_of(pk: int, edges: Iterable[Edge]) -> list[Node]:
    """The way back to the first ancestor, then everything that came from it, each below its parent."""
    above = {edge.child: edge for edge in edges}
    below: dict[int, list[Edge]] = defaultdict(list)
    for edge in above.values():
        below[edge.parent].append(edge)
    root = pk
    while root in above:
        root = above[root].parent
    return list(_walk(root, below))


def _walk(root: int, below: dict[int, list[Edge]]) -> Iterator[Node]:
    """Depth first, without recursion: a chain may be long."""
    waiting = [Node(root, 0, None)]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [Node(edge.child, node.depth + 1, edge) for edge in reversed(below[node.pk])]


def around(nodes: list[Node], pk: int) -> list[Node]:
    """At most MAX_NODES: those nearest to `pk` in the order of the tree, and always its own parent."""
    place = next(index for index, node in enumerate(nodes) if node.pk == pk)
    first = max(0, min(place - MAX_NODES // 2, len(nodes) - MAX_NODES))
    shown = nodes[first : first + MAX_NODES]
    edge = nodes[place].edge
    if edge and edge.parent not in {node.pk for node in shown}:
        shown = [next(node for node in nodes if node.pk == edge.parent), *shown[1:]]
    return shown
