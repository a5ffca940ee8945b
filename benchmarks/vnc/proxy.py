"""noVNC's way to a desktop: our proxy (web process and the env worker's relay) against websockify.

    python -m benchmarks.vnc.proxy [--rounds 5] [--changes 120] [--fuzz 100000]

One X11 desktop of 1280 x 720 in a whole private installation. A window on it changes its colour; measured is
the time until the same client, through either proxy, has the update of those pixels, and the CPU that the
proxy's processes used meanwhile (less what they use without a viewer). Rounds alternate. Then: 16 viewers on
the one desktop, a viewer that takes nothing, and random and malformed RFB messages sent by somebody who may
only watch, after which desktop and web process must be as before.

Bars: latency p50 <= 1.5 x websockify's + 2 ms; CPU per update <= 2.5 x websockify's (an ASGI server, the
filter, and rights looked after all the time); 16 viewers all see the same last picture; a viewer that takes
nothing costs <= 32 MB; fuzzing changes nothing, and every broken stream is refused.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from typing import Any

from benchmarks.report import finish, percentile, print_table
from benchmarks.vnc.hostile_viewers import fuzz, slow_viewer
from benchmarks.vnc.rfb_client import RfbViewer
from benchmarks.vnc.rounds import crowd, one_round
from benchmarks.vnc.stage import Peer, Stage, prepare, websockify
from testing.private_installation import Instance

MAX_LATENCY_RATIO, LATENCY_SLACK_MS = 1.5, 2.0
MAX_CPU_RATIO = 2.5
MAX_SLOW_MB = 32.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--changes", type=int, default=120, help="colour changes in a round")
    parser.add_argument("--fuzz", type=int, default=100_000, help="messages of the fuzzer")
    options = parser.parse_args()
    with Instance(without=["gpu"], slots=1, env_workers=1) as deskhand:
        os.environ.update(deskhand.environment)
        import django

        django.setup()
        stage = prepare(deskhand)
        figures, passed = asyncio.run(measure(stage, options))
    return finish("vnc_proxy", figures, passed=passed)


async def measure(stage: Stage, options: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    async with websockify(stage.vnc_socket) as (url, process):
        ours = Peer("deskhand", stage.viewer, [stage.web, stage.worker])
        theirs = Peer("websockify", lambda: RfbViewer.open(url, subprotocols=["binary"]), [process])
        for _ in range(options.rounds):
            for peer in (ours, theirs):
                await one_round(stage.painter, peer, options.changes)
        crowds = {peer.name: await crowd(stage, peer, options.changes // 2) for peer in (ours, theirs)}
    slow_mb = await slow_viewer(stage)
    fuzzed = await fuzz(stage, options.fuzz)
    return judge(ours, theirs, crowds, slow_mb, fuzzed)


def judge(
    ours: Peer, theirs: Peer, crowds: dict[str, dict[str, float]], slow_mb: float, fuzzed: dict[str, Any]
) -> tuple[dict[str, Any], bool]:
    """Print the table; (figures, bar met)."""
    rows = []
    figures: dict[str, Any] = {}
    for peer in (ours, theirs):
        figures[peer.name] = {
            "updates": peer.updates,
            "p50_ms": round(percentile(peer.latencies_ms, 0.5), 2),
            "p95_ms": round(percentile(peer.latencies_ms, 0.95), 2),
            "cpu_ms_per_update": round(peer.cpu_ms, 2),
            **{f"viewers_16_{name}": value for name, value in crowds[peer.name].items()},
        }
        rows.append((peer.name, *figures[peer.name].values()))
    print_table(("proxy", *figures[ours.name]), rows)
    mine, other = figures[ours.name], figures[theirs.name]
    figures |= {
        "latency_ratio": round(mine["p50_ms"] / other["p50_ms"], 2),
        "cpu_ratio": round(mine["cpu_ms_per_update"] / max(0.01, other["cpu_ms_per_update"]), 2),
        "slow_viewer_mb": slow_mb,
        "fuzz": fuzzed,
    }
    names = ("latency_ratio", "cpu_ratio", "slow_viewer_mb", "fuzz_messages", "unchanged", "alive")
    values = (*(figures[name] for name in names[:3]), fuzzed["messages"])
    print_table(names, [(*values, fuzzed["desktop_unchanged"], fuzzed["web_alive"])])
    passed = (
        mine["p50_ms"] <= MAX_LATENCY_RATIO * other["p50_ms"] + LATENCY_SLACK_MS
        and figures["cpu_ratio"] <= MAX_CPU_RATIO
        and mine["viewers_16_pictures"] == 1
        and slow_mb <= MAX_SLOW_MB
        and fuzzed["desktop_unchanged"]
        and fuzzed["refused"] == fuzzed["connections"]
        and fuzzed["web_alive"]
    )
    return figures, passed


if __name__ == "__main__":
    sys.exit(main())
