"""The space in which a trajectory's programs live: namespaces of their own, made anew by every reset.

    agent, X server, window manager            outside: programs cannot name, signal or trace them
      └─ judges' pid namespace                 commands of evaluators: they see all programs
           └─ programs' pid namespace          what the trajectory started; sees nothing of the above

Programs and evaluators' commands share files, display and session bus. Ending the first process of the
judges' namespace ends everything in both, whatever it does; their files and shared memory go with them.
`MachineSpace` is the same idea in a virtual machine, where the agent is root.
"""

import contextlib
import dataclasses
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from typing import IO

from workers.guest import kernel_calls
from workers.guest.cleanup import NotCleaned, descendants, process_table, reap
from workers.guest.kernel_calls import die_with_parent
from workers.guest.session_layout import Layout

STAGE = "/run/space"
"""Where the new space's file systems are put together."""
NAMESPACES = ("mnt", "ipc", "uts", "cgroup", "user")
END_LIMIT_S = 4.0
JUDGES_MORE = 64
"""Processes that evaluators' commands may have besides a trajectory that has all it may."""
INODES_PER_MB = 256
GROUPS = "/sys/fs/cgroup"
JUDGES, PROGRAMS = "judges", "programs"
"""Control groups of a machine."""
# The kernel collects orphans by itself when their parent ignores the signal of a child's end. dash cannot.
FIRST_PROCESS = "echo; exec env --ignore-signal=CHLD sleep infinity"


@dataclasses.dataclass(frozen=True)
class Door:
    """How a process outside gets in."""

    judges: int
    """Pid of the first process of the judges' namespace; in a machine the agent's."""
    programs: int
    """The same of the programs' namespace."""
    max_processes: int = 0
    call_filter: str = ""
    """File with the system call filter, "" = none."""
    judging: bool = False
    uid: int = 0
    gid: int = 0
    """In a machine: who programs are; the agent is root."""

    @property
    def first(self) -> int:
        """Whose pid namespace a new process is to be born in."""
        return self.judges if self.judging else self.programs

    def pass_through(self, folder: str) -> None:
        """In a process born there: see what programs see, have no right beyond theirs. Raises OSError."""
        program = b""
        if self.call_filter:
            with open(self.call_filter, "rb") as file:
                program = file.read()
        if self.uid:
            self._become_user()
        else:
            self._join_namespaces()
        kernel_calls.give_up_rights()
        if program:
            kernel_calls.filter_calls(program)
        die_with_parent()
        try:
            os.chdir(folder)
        except OSError:
            if not self.judging:
                raise
            os.chdir("/")  # a program closed it; the evaluator's command is to run all the same

    def _become_user(self) -> None:
        """In a machine: the user, in a group that can be ended; programs see only their own processes."""
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("0")  # not the agent's, which the kernel ends last
        with open(f"{GROUPS}/{JUDGES if self.judging else PROGRAMS}/cgroup.procs", "w") as file:
            file.write("0")
        if not self.judging:
            handle = os.open(f"/proc/{self.programs}/ns/mnt", os.O_RDONLY)
            kernel_calls.join(handle)
            os.close(handle)
        kernel_calls.become(self.uid, self.gid)

    def _join_namespaces(self) -> None:
        handles = [os.open(f"/proc/{self.programs}/ns/{name}", os.O_RDONLY) for name in NAMESPACES]
        for name, handle in zip(NAMESPACES, handles, strict=True):
            kernel_calls.join(handle)
            os.close(handle)
            if name == "mnt" and self.judging:  # its own table of processes; the programs' lacks it
                see_own_processes(kernel_calls.PROC_FLAGS | kernel_calls.MS_RDONLY)
        limit = self.max_processes + (JUDGES_MORE if self.judging else 0)
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))


def spawn_first(argv: list[str], stage: Callable[[], None]) -> "tuple[subprocess.Popen, IO[bytes]]":
    """The first process of a new pid namespace, and what it says once it is ready. Raises OSError.

    `stage` runs in it before its program.
    """
    read_end, write_end = os.pipe()
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        kernel_calls.unshare(kernel_calls.CLONE_NEWPID)
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=write_end, preexec_fn=stage, cwd="/"
        )
    finally:
        kernel_calls.join(own, kernel_calls.CLONE_NEWPID)
        os.close(own)
        os.close(write_end)
    return process, os.fdopen(read_end, "rb")


def see_own_processes(flags: int = kernel_calls.PROC_FLAGS) -> None:
    """A mount namespace whose /proc shows the processes of one's own pid namespace."""
    kernel_calls.unshare(kernel_calls.CLONE_NEWNS)
    kernel_calls.mount("proc", "/proc", flags)


class ProgramSpace:
    """One space: spawned, ready, ended."""

    def __init__(self, layout: Layout) -> None:
        """Spawn it and return at once. Raises OSError."""
        self._layout = layout
        self.door: Door | None = None
        self.bus: subprocess.Popen | None = None
        """The session bus in it; it belongs to the programs."""
        self.a11y: subprocess.Popen | None = None
        """The accessibility bus's launcher, where programs publish their widgets."""
        self._process, self.ready_pipe = spawn_first(self._command(), self._stage)
        """The pipe is readable when it is ready."""

    @property
    def first_pid(self) -> int:
        """Its first process; all that is in it ends with that."""
        return self._process.pid

    def pids(self) -> set[int]:
        """Its own processes; none of a program."""
        buses = {process.pid for process in (self.bus, self.a11y) if process}
        if self.a11y:
            buses |= descendants(self.a11y.pid).keys()
        return {self._process.pid} | ({self.door.programs} if self.door else set()) | buses

    def wait_ready(self) -> Door:
        """Raises OSError."""
        if self.door is None:
            with self.ready_pipe as said:
                if not said.readline():
                    raise OSError(f"no space for programs: bwrap ended with {self._process.wait()}")
            judges = self._process.pid
            (programs,) = [pid for pid, (parent, _, _) in process_table().items() if parent == judges]
            self.door = Door(judges, programs, self._layout.max_processes, self._layout.call_filter)
        return self.door

    def _stage(self) -> None:
        """In the first process of the judges' namespace: its process table, and empty file systems."""
        layout = self._layout
        die_with_parent()
        see_own_processes()
        for name in ("home", "rest"):
            options = f"size={layout.space_mb}m,nr_inodes={layout.space_mb * INODES_PER_MB},mode=700"
            options = "mode=700" if "limits" in layout.weakened else options
            kernel_calls.mount("tmpfs", f"{STAGE}/{name}", kernel_calls.FILE_FLAGS, options)
        for name in ("tmp", "run", "shm"):
            os.mkdir(f"{STAGE}/rest/{name}", 0o700)
        shutil.copytree(layout.skeleton, f"{STAGE}/home", dirs_exist_ok=True, symlinks=True)
        os.chmod(f"{STAGE}/home", 0o700)  # not the skeleton's

    def _command(self) -> list[str]:
        layout = self._layout
        argv = [layout.bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        argv += ["--unshare-cgroup-try", "--disable-userns", "--uid", "1000", "--gid", "1000"]
        argv += [
            "--hostname",
            "desk",
            "--die-with-parent",
            "--new-session",
            "--as-pid-1",
            "--ro-bind",
            "/",
            "/",
        ]
        argv += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
        argv += [
            "--perms",
            "0500",
            "--size",
            "4096",
            "--tmpfs",
            layout.run_dir,
            "--remount-ro",
            layout.run_dir,
        ]
        argv += ["--perms", "0500", "--size", "4096", "--tmpfs", STAGE, "--remount-ro", STAGE]
        argv += ["--bind", f"{STAGE}/home", layout.home, "--bind", f"{STAGE}/rest/tmp", layout.tmp]
        argv += ["--bind", f"{STAGE}/rest/run", layout.runtime_dir, "--bind", f"{STAGE}/rest/shm", "/dev/shm"]
        argv += ["--ro-bind", "/tmp/.X11-unix", "/tmp/.X11-unix"]
        return [*argv, "--chdir", "/", "--", "/bin/sh", "-c", FIRST_PROCESS]

    def kill(self) -> None:
        """Everything inside ends, whatever it does; `wait_ended` says when."""
        self._process.kill()

    def wait_ended(self, keep: set[int]) -> None:
        """Collect what ends. Raises NotCleaned. `keep`: processes of ours that are waited for elsewhere."""
        deadline = time.monotonic() + END_LIMIT_S
        # The first process ends last: the kernel waits until all others are collected, by us too.
        while self._process.poll() is None:
            reap(keep | {self._process.pid})
            if time.monotonic() > deadline:
                raise NotCleaned("the programs' processes could not be ended")
            time.sleep(0.001)
        reap(keep)

    def end_judges(self) -> None:
        """End what commands of evaluators left running; programs go on."""
        first = self._process.pid
        theirs = _pid_namespace(first)
        for pid in process_table():
            if pid != first and _pid_namespace(pid) == theirs:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _pid_namespace(pid: int) -> int:
    """Number of the pid namespace that a process lives in; -1 when it has ended."""
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino
    except OSError:
        return -1
