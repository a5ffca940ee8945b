"""Attacks on the walls: more rights, other namespaces, calls that reach other processes or the kernel."""

# ruff: noqa: E501 - an attack is one row: its name, program, verdict and defence

from __future__ import annotations

from testing.hostile_desktop.forge import reported
from testing.hostile_desktop.stage import Attack


def written_back(path: str) -> str:
    """Write a kernel setting's own value: harmless where it succeeds."""
    return f"def go():\n    text = open({path!r}).read()\n    open({path!r}, 'w').write(text)\ntried(go)"


def call(expression: str, *, prepare: str = "") -> str:
    return f"{prepare}\ndef go():\n    result = {expression}\n    return result >= 0\ntried(go)"


CHILD = (
    "victim = subprocess.Popen(['sleep', '30'])\n"
    "class IoVec(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]\n"
    "room = ctypes.create_string_buffer(8)\n"
)
NEW_USER, NEW_NS, NEW_TIME = 0x10000000, 0x20000, 0x80
NESTED = f"""
def go():
    uid = os.getuid()
    if libc.unshare({NEW_USER | NEW_NS}): return False
    open('/proc/self/setgroups', 'w').write('deny')
    open('/proc/self/uid_map', 'w').write(f'0 {{uid}} 1')
"""
CLONE3 = """
class Arguments(ctypes.Structure): _fields_ = [(name, ctypes.c_uint64) for name in 'fpctespjx'[:8]]
arguments = Arguments(); arguments.f = 0x10000000; arguments.e = 17
def go():
    pid = libc.syscall(435, ctypes.byref(arguments), 64)
    if pid == 0: os._exit(0)
    return pid > 0
tried(go)
"""
CLONE = """
def go():
    pid = libc.syscall(56, ctypes.c_long(0x10000000 | 17), 0, 0, 0, 0)
    if pid == 0: os._exit(0)
    return pid > 0
tried(go)
"""


SETTINGS = ("kernel/core_pattern", "kernel/panic", "vm/swappiness", "fs/protected_hardlinks")
ROOT = tuple(
    Attack(f"write /proc/sys/{name}", written_back(f"/proc/sys/{name}"), reported, "namespaces")
    for name in SETTINGS
)  # fmt: skip
"""Against a desk host that stayed root, with programs beside the agent as they were then."""
SEE_AGENT = Attack(
    "see the agent among the processes",
    "tried(lambda: len(pids_of('guest.agent')) > 0)",
    reported,
    "namespaces",
)
ESCAPE = (
    SEE_AGENT,
    Attack("see the agent's folder", "tried(lambda: 'agent.sock' in os.listdir('/run/desk'))", reported, "namespaces"),
    Attack("make a user namespace", call(f"0 - libc.unshare({NEW_USER}) ** 2"), reported, "namespaces"),
    Attack("make a user namespace by clone", CLONE, reported, "namespaces"),
    Attack("make a user namespace by clone3", CLONE3, reported, "namespaces"),
    Attack("fake the clock in a time namespace", call(f"0 - libc.unshare({NEW_USER | NEW_TIME}) ** 2"), reported, "namespaces"),
    Attack("become root in a nested namespace", NESTED + "    return os.getuid() == 0\ntried(go)", reported, "namespaces"),
    Attack("mount in a nested namespace", NESTED + "    return libc.mount(b'x', b'/tmp', b'tmpfs', 0, b'') == 0\ntried(go)", reported, "namespaces"),
    Attack("trace a process", CHILD + call("syscall(101, 16, victim.pid, 0, 0)"), reported, "filter"),
    Attack("take a process's open file", CHILD + call("syscall(438, syscall(434, victim.pid, 0), 0, 0)"), reported, "filter"),
    Attack("read a process's memory", CHILD + """
def go():
    line = next(l for l in open(f'/proc/{victim.pid}/maps') if '[stack]' in l)
    here = IoVec(ctypes.addressof(room), 8); there = IoVec(int(line.split('-')[0], 16), 8)
    return libc.syscall(310, victim.pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) == 8
tried(go)""", reported, "filter"),
    Attack("compare two processes in the kernel", CHILD + call("syscall(312, os.getpid(), victim.pid, 1, 0, 0)"), reported, "filter"),
    Attack("put a key into the kernel", call("syscall(248, b'user', b'note', b'text', 4, -4)"), reported, "filter"),
    Attack("keep a key ring for others", call("syscall(250, 1, b'note')"), reported, "filter"),
    Attack("make a ring of asynchronous calls", call("syscall(425, 4, ctypes.create_string_buffer(120).raw)"), reported, "filter"),
    Attack("name files by handles", "class Handle(ctypes.Structure): _fields_ = [('n', ctypes.c_uint), ('t', ctypes.c_int), ('b', ctypes.c_char * 128)]\nhandle = Handle(128)\nnumber = ctypes.c_int()\ntried(lambda: libc.syscall(303, -100, b'/tmp', ctypes.byref(handle), ctypes.byref(number), 0) == 0)", reported, "filter"),
    Attack("open a socket to the hypervisor", "tried(lambda: bool(socket.socket(40, socket.SOCK_STREAM)))", reported, "filter"),
)  # fmt: skip
