"""The in-desktop agent: `python3 -s -E -m workers.guest.agent LAYOUT.json`.

Starts the base processes, tells the host on stdout that it is ready (one JSON line), then serves
OSWorld's in-VM protocol as HTTP: on RUN_DIR/agent.sock in a sandbox, on a TCP port in a virtual machine.
One thread does everything: base processes die with the thread that starts them.

    starting -> serving (reset any number of times) -> ended with the X server or the host
"""

import asyncio
import functools
import json
import os
import sys
from collections.abc import Awaitable, Callable

from workers.guest import http_server, kernel_calls, xorg_config
from workers.guest.about_programs.place_routes import PlaceRoutes
from workers.guest.about_programs.waiting_programs import look_at
from workers.guest.cleanup import CleanupReport, NotCleaned, descendants, kill_others, restore_skeleton, wipe
from workers.guest.clone_wakeup import MachineRoutes
from workers.guest.file_routes import FileRoutes
from workers.guest.kernel_calls import adopt_orphans, die_with_parent
from workers.guest.machine_space import MachineSpace
from workers.guest.panel_zygote import PanelZygote
from workers.guest.preloaded_python import PreloadedPython
from workers.guest.program_routes import ProgramRoutes
from workers.guest.program_space import ProgramSpace
from workers.guest.recording_routes import RecordingRoutes
from workers.guest.screen_routes import ScreenRoutes
from workers.guest.session_layout import Layout
from workers.guest.session_processes import DEFAULT_PLACE, SHIM, Session, SessionError

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
SPARE_AFTER_S = 0.1
"""The first calls of a trajectory come before its successor's space."""


class Agent:
    """Ties session, programs and cleaning together; owns nothing else."""

    def __init__(self, session: Session, zygote: PanelZygote) -> None:
        self.session = session
        self.zygote = zygote
        self.machine = MachineRoutes() if session.layout.machine else None
        tools = ("workers.guest.accessibility",) if session.layout.accessibility else ()
        self.interpreter = PreloadedPython(SHIM, tools)
        self.files = FileRoutes(session.layout)
        self.programs = ProgramRoutes(session, zygote, self.interpreter, self.files)
        self.screen = ScreenRoutes(session, self.programs, self.files)
        self.place = PlaceRoutes(self.programs)
        self.recording = RecordingRoutes(session, self.programs, self.files)
        self.sockets: dict[str, int] = {}
        """The sockets shared with the host: name -> inode."""

    def remember_sockets(self) -> None:
        self.sockets = inodes(self.session.layout.run_dir)

    def routes(self) -> dict[tuple[str, str], http_server.Route]:
        parts = (self.programs, self.files, self.screen, self.place, self.recording)
        table = {key: route for part in parts for key, route in part.routes().items()}
        table["GET", "/health"] = self.health
        table["GET", "/waiting"] = self.waiting
        if self.machine:
            table.update(self.machine.routes() | self.screen.windows.routes())
        else:
            table["POST", "/reset"] = self.reset
        return table

    async def health(self, request: http_server.Request) -> http_server.Response:
        processes = descendants(os.getpid())
        base = self.session.base_pids() | self.helpers()
        extra = {str(pid): name for pid, name in processes.items() if pid not in base}
        answer = {"status": "ok", "server": "deskhand", "base": sorted(base), "programs": extra}
        answer["nonce"] = request.query.get("nonce", "")
        return http_server.json_response(answer)

    async def waiting(self, _request: http_server.Request) -> http_server.Response:
        """What the programs, and the window manager, compute and wait for."""
        base = self.session.base_pids() | self.helpers()
        programs = descendants(os.getpid()).keys() - base
        return http_server.json_response(
            look_at(programs, [self.session.base[name].pid for name in ("x", "wm")])
        )

    def helpers(self) -> set[int]:
        """Pids of the agent's own other processes."""
        interpreter = {self.interpreter.pid, self.screen.widgets.pid} - {0}
        session = self.session
        space = session.space.pids() if session.space else set()
        # Nothing of a trajectory is in the spare yet.
        spare = session.spare.pids() | descendants(session.spare.first_pid).keys() if session.spare else set()
        return {self.zygote.pid} | interpreter | space | spare

    async def reset(self, _request: http_server.Request) -> http_server.Response:
        """Clean the inside. 500 with the reason when the desktop must be rebuilt."""
        self.programs.abandon()
        self.screen.forget()
        try:
            cleaned = self.clean()
        except (NotCleaned, SessionError, OSError) as exc:
            return http_server.json_response({"status": "dirty", "message": str(exc)}, 500)
        return http_server.json_response(
            {
                "status": "clean",
                "killed": cleaned.killed,
                "removed": cleaned.removed,
                "left": cleaned.processes,
            }
        )

    def clean(self) -> CleanupReport:
        """End the trajectory's processes, wipe every writable folder, restart the bus. Raises NotCleaned."""
        session, layout = self.session, self.session.layout
        session.env |= DEFAULT_PLACE
        if session.wm_ended or session.base["wm"].poll() is not None:
            raise NotCleaned("the window manager was ended by a program")
        if session.space is not None:
            return self.renew_space()
        session.stop("a11y")
        session.stop("bus")
        keep = session.base_pids() | {self.zygote.pid}
        done = CleanupReport(killed=kill_others(keep))
        self.interpreter.forget()
        done.removed += wipe(layout.home)
        done.removed += wipe(layout.tmp, keep=frozenset({".X11-unix"}))
        done.removed += wipe(layout.runtime_dir)
        done.removed += wipe(layout.run_dir, keep=frozenset(self.sockets))
        if inodes(layout.run_dir) != self.sockets:
            raise NotCleaned("a program removed or replaced the desktop's sockets")
        for folder in layout.scratch:
            done.removed += wipe(folder)
        restore_skeleton(layout.skeleton, layout.home)
        session.start_bus()
        session.start_a11y()
        done.processes = sorted(descendants(os.getpid()).values())
        return done

    def renew_space(self) -> CleanupReport:
        """End all programs and their files at once, and let the next ones into a new space.

        Raises NotCleaned, SessionError or OSError.
        """
        session, old = self.session, self.session.space
        assert isinstance(old, ProgramSpace)
        ended = descendants(os.getpid()).keys() - session.base_pids() - self.helpers()
        old.kill()
        self._stop_waiting_for_spare()
        new = session.enter_next_space()
        self.files.inside.use_root_of(new.wait_ready().programs)
        old.wait_ended(session.base_pids() | self.helpers())
        left = descendants(os.getpid())
        if more := left.keys() - session.base_pids() - self.helpers():
            raise NotCleaned(f"{len(more)} processes are not of a fresh desktop")
        asyncio.get_running_loop().call_later(SPARE_AFTER_S, self.prepare_spare)
        return CleanupReport(killed=len(ended), processes=sorted(left.values()))

    def prepare_spare(self) -> None:
        """Make the space after this one, while the trajectory does something else."""
        if self.session.spare is None:
            ready_pipe = self.session.begin_spare().ready_pipe
            asyncio.get_running_loop().add_reader(ready_pipe, self._finish_spare)

    def _finish_spare(self) -> None:
        self._stop_waiting_for_spare()
        self.session.finish_spare()

    def _stop_waiting_for_spare(self) -> None:
        spare = self.session.spare
        if spare is not None and not spare.ready_pipe.closed:
            asyncio.get_running_loop().remove_reader(spare.ready_pipe)

    def reap_orphans(self) -> None:
        """A machine is never reset in place, so what its programs leave behind is collected meanwhile."""
        self.programs.collect()
        keep = self.session.base_pids() | self.helpers() | self.programs.waited_for
        peek = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            while (ended := os.waitid(os.P_ALL, 0, peek)) is not None and ended.si_pid not in keep:
                os.waitpid(ended.si_pid, os.WNOHANG)
        except ChildProcessError:
            return


def inodes(folder: str) -> dict[str, int]:
    """Name -> inode of a folder's entries."""
    with os.scandir(folder) as entries:
        return {entry.name: entry.inode() for entry in entries}


async def watch_base(agent: Agent) -> None:
    """End the desktop when it has lost its display or zygote: the host notices and says so."""
    if agent.machine or agent.session.layout.accessibility:
        agent.interpreter.warm_up()  # its tools are wanted at once, and load a second of libraries
    while True:
        await asyncio.sleep(0.5)
        if agent.machine:
            agent.reap_orphans()
        if agent.session.base["wm"].poll() is not None:
            sys.stderr.write("agent: the window manager ended, starting it again\n")
            agent.session.wm_ended = True
            agent.session.start_window_manager()
        if agent.session.base["x"].poll() is not None:
            sys.stderr.write("agent: the X server ended, so does this desktop\n")
            os._exit(3)
        if os.waitpid(agent.zygote.pid, os.WNOHANG)[0]:
            sys.stderr.write("agent: the zygote ended, so does this desktop\n")
            os._exit(4)


async def serve(agent: Agent) -> None:
    layout = agent.session.layout
    handler: Handler = functools.partial(
        http_server.serve_connection, routes=agent.routes(), connects=layout.machine
    )
    if layout.agent_port:
        if layout.host_address and not {"agent", "port"} & set(layout.weakened):
            handler = functools.partial(answer_host, handler=handler, address=layout.host_address)
        server = await asyncio.start_server(handler, "0.0.0.0", layout.agent_port)
    else:
        server = await asyncio.start_unix_server(handler, os.path.join(layout.run_dir, "agent.sock"))
        agent.remember_sockets()
    sys.stdout.write(json.dumps({"ready": True, "display": agent.session.env["DISPLAY"]}) + "\n")
    sys.stdout.flush()
    async with server:
        await watch_base(agent)


async def answer_host(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, handler: Handler, address: str
) -> None:
    """Serve connections from this address alone: a program inside cannot have it and be answered."""
    if writer.get_extra_info("peername")[0] == address:
        await handler(reader, writer)
    else:
        writer.close()


def start(layout: Layout) -> Agent:
    """Bring the desktop up. Raises SessionError or OSError."""
    session = Session(layout)
    if layout.space_mb or layout.machine:
        kernel_calls.keep_rights_to_oneself()
        kernel_calls.hide_memory()
    else:
        restore_skeleton(layout.skeleton, layout.home)
    zygote = PanelZygote()
    session.start_display()
    if layout.user and "agent" not in layout.weakened:
        session.space = MachineSpace(layout)
    elif layout.space_mb:
        session.enter_next_space()
    session.start_programs()
    agent = Agent(session, zygote)
    if session.door:
        agent.files.inside.use_root_of(session.door.programs)
        if session.door.uid and "files" not in layout.weakened:
            agent.files.inside.use_rights_of(session.door.uid, session.door.gid)
    return agent


def read_layout(path: str) -> Layout:
    """The layout file; a machine's screen size is what its display says."""
    with open(path, encoding="utf-8") as file:
        values = json.load(file)
    if values.get("machine"):
        values["width"], values["height"] = xorg_config.screen_size()
        with open("/proc/cmdline", encoding="utf-8") as line:
            values["weakened"] = weaknesses(line.read())
    return Layout(**values)


def weaknesses(kernel_line: str) -> tuple[str, ...]:
    """What tests leave out of a machine, to see what it holds off; its maker says so to the kernel."""
    without = kernel_line.partition("deskhand.without=")[2]
    return tuple(without.split()[0].split(",")) if without.strip() else ()


def main() -> int:
    die_with_parent()
    adopt_orphans()
    try:
        agent = start(read_layout(sys.argv[1]))
    except (SessionError, OSError) as exc:
        sys.stdout.write(json.dumps({"ready": False, "message": str(exc)}) + "\n")
        return 2
    asyncio.run(serve(agent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
