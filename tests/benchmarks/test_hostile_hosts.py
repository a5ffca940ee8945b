"""The list of attacks and their defences fits the tree; running it takes an installation and root."""

from benchmarks.chaos.hostile_hosts import program  # noqa: F401  (all attacks are in the list)
from benchmarks.chaos.hostile_hosts.defences import DEFENCES
from benchmarks.chaos.hostile_hosts.scene import ATTACKS
from scripts.mutants.planted import REPOSITORY, BadList


def test_each_defence_is_in_the_tree_and_each_is_tried():
    problems = []
    for plants in DEFENCES.values():
        for plant in plants:
            try:
                plant.mutated(REPOSITORY)
            except BadList as problem:
                problems.append(str(problem))
    assert problems == []
    assert {one.defence for one in ATTACKS.values()} == set(DEFENCES)


def test_there_are_as_many_attacks_as_the_bar_asks():
    assert len(ATTACKS) >= 60
    assert {one.kind for one in ATTACKS.values()} >= {"ownership", "joining", "in between", "policy"}
