"""One attack, as a program of its own: reads its scene (JSON), says on which victims it succeeded."""

from __future__ import annotations

import json
import sys

from benchmarks.chaos.hostile_hosts import in_between, joining, ownership, policy, scope  # noqa: F401
from benchmarks.chaos.hostile_hosts.scene import ATTACKS, Scene


def main() -> int:
    asked = json.load(sys.stdin)
    scene, found = Scene(**asked["scene"]), ATTACKS[asked["attack"]]
    victims = list(scene.victims) if found.each_victim else [""]
    print(json.dumps([victim or "it" for victim in victims if found.act(scene, victim)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
