"""A server, and hosts of desktops and of GPUs that joined it over HTTPS. Needs root."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from testing.joined_machine import JoinedMachine
from testing.linked_network import Network
from testing.private_installation import Instance
from testing.routed_networks import routed_networks
from testing.two_gpu_hosts import BOTH, TwoGpuHosts
from webapp.lib.supervisor.ports import free_port


@contextmanager
def running(*machines: Instance | JoinedMachine) -> Iterator[None]:
    """Started in this order, and stopped afterwards."""
    with ExitStack() as stack:
        for machine in machines:
            stack.callback(machine.stop)
            machine.start()
        yield


@dataclass(frozen=True)
class JoinedSite:
    """Networks, host names, checkouts and data folders of their own."""

    server: Instance
    env_hosts: list[JoinedMachine]
    gpu_hosts: list[JoinedMachine]
    gpu_links: list[Network]
    folder: Path

    @property
    def machines(self) -> list[Instance | JoinedMachine]:
        return [self.server, *self.env_hosts, *self.gpu_hosts]

    @property
    def pool(self) -> TwoGpuHosts:
        return TwoGpuHosts(self.server, self.gpu_hosts, self.folder)


@contextmanager
def joined_site(
    folder: Path, database: Mapping[str, str], *, num_env_hosts: int, slots: int, hidden: Sequence[Path] = ()
) -> Iterator[JoinedSite]:
    """Set up, and stopped. Database and Redis of the server listen where no host reaches them.

    Hosts see neither the server's data, nor each other's, nor what is `hidden`; gpu hosts share the folder
    of checkpoints. `slots`: of all env hosts. Raises NoGround.
    """
    names = [*(f"far{number}" for number in range(num_env_hosts)), *BOTH]
    shared = folder / "shared"
    for name in (*names, shared.name):
        (folder / name).mkdir(mode=0o755)
    checkpoints = {"DESKHAND_CHECKPOINT_DIRS": str(shared)}
    with ExitStack() as stack:
        links = stack.enter_context(routed_networks(len(names)))
        own = {"DESKHAND_HOSTS_ADDRESS": links[0].near, "DESKHAND_HOSTS_PORT": str(free_port())}
        env = {**database, **checkpoints, **own}
        server = Instance(without=["gpu", "env", "deskhost"], env=env)
        stack.enter_context(server)
        server.manage("import_tasks", "first-desk")
        hosts = []
        for name, link in zip(names, links, strict=True):
            is_gpu = name in BOTH
            host = JoinedMachine(
                name,
                link,
                folder / name,
                server,
                roles="gpu" if is_gpu else "env",
                slots=slots // num_env_hosts,
                variables=checkpoints
                | {"DESKHAND_POLICY_ADDRESS": link.far, "DESKHAND_TRAIN_NETWORK": link.far}
                if is_gpu
                else {},
                hidden=[
                    *hidden,
                    *(folder / other for other in names if other != name),
                    *([] if is_gpu else [shared]),
                ],
            )
            host.join()
            stack.callback(host.stop)
            hosts.append(host)
        server.stop()
        yield JoinedSite(server, hosts[:-2], hosts[-2:], links[-2:], folder)
