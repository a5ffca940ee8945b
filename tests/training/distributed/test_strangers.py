"""Another user of this machine who connects where ranks meet: nothing is said to them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from training.distributed.strangers import StrangerConnected, require_own_peers

REPOSITORY = Path(__file__).resolve().parents[3]
OTHER_USER = 65534
CONNECT = """
import os, socket, sys
import encodings.idna
os.setuid(int(sys.argv[2]))
line = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print("there", flush=True)
sys.stdin.read()
"""
RANK = """
import sys, time
import torch, torch.distributed as dist
from training.distributed import strangers, world
if sys.argv[1] == "bare":
    world.require_own_peers = lambda: None
one = world.start_world()
for _ in range(3000):
    dist.all_reduce(torch.full((4,), 7.0))
"""
ATTACK = """
import os, socket, struct, time
import encodings.idna
os.setuid(65534)
ends, tried, lines = time.monotonic() + 40, {}, []
print("ready", flush=True)
while time.monotonic() < ends and len(lines) < 400 and os.path.exists("running"):
    for row in open("/proc/net/tcp").read().splitlines()[1:]:
        where, state = row.split()[1], row.split()[3]
        port = int(where.split(":")[1], 16)
        if state == "0A" and tried.setdefault(port, 0) < 40:
            tried[port] += 1
            try:
                for number in range(4):
                    lines.append(socket.create_connection(("127.0.0.1", port), 0.2))
                    lines[-1].sendall(struct.pack("<q", number))
            except OSError:
                pass  # a rank that ended, or was ended for us, takes its port with it
    time.sleep(0.002)
time.sleep(1)
heard = 0
for line in lines:
    line.setblocking(False)
    try:
        heard += len(line.recv(1 << 16))
    except OSError:
        pass
print(heard)
"""
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")


@contextmanager
def connected(user: int) -> Iterator[socket.socket]:
    """A process of that user is connected with this one."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = [sys.executable, "-c", CONNECT, str(server.getsockname()[1]), str(user)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            assert other.stdout.readline()
            with server.accept()[0] as line:
                yield line
            other.communicate()


def test_a_process_of_our_own_user_is_a_peer() -> None:
    with connected(os.geteuid()):
        require_own_peers()


def test_one_of_another_user_is_named_and_refused() -> None:
    with connected(OTHER_USER), pytest.raises(StrangerConnected, match=f"user {OTHER_USER} of this machine"):
        require_own_peers()
    require_own_peers()


@pytest.mark.slow
@pytest.mark.parametrize("tree", ["ours", "bare"])
def test_who_connects_in_the_place_of_a_rank_reads_nothing(tmp_path: Path, tree: str) -> None:
    """In a network of its own, so that nothing else of this machine is attacked."""
    for name, program in (("rank_program.py", RANK), ("attack.py", ATTACK)):
        (tmp_path / name).write_text(program)
    launch = f"{sys.executable} -m training.distributed.launch --ranks 2 -m rank_program {tree}"
    script = f"""
    cd {tmp_path}  # only from within another user sees what is there: the folders above are root's alone
    ip link set lo up; touch running
    {sys.executable} attack.py > heard & attack=$!
    {launch} 2> said
    rm running; wait $attack
    """
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{REPOSITORY}"}
    tmp_path.chmod(0o755)
    heard = said = ""
    for _ in range(4):  # the attacker has to be quicker than a rank
        subprocess.run(["unshare", "--net", "bash", "-c", script], env=environment, check=False, timeout=120)
        heard, said = (tmp_path / "heard").read_text().split()[-1], (tmp_path / "said").read_text()
        if int(heard) or "user 65534" in said:
            break
    assert (int(heard) > 0, "user 65534 of this machine" in said) == (tree == "bare", tree == "ours"), said
