"""System calls that programs in a desktop may not make, as the kernel's filter wants it (classic BPF).

Refused is what reaches other processes, makes namespaces, loads code into the kernel, or leaves the network
namespace. A refused call fails with an error, so that programs fall back or say what they miss.
"""

import errno
import platform
import struct
from dataclasses import dataclass

LOAD, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
NUMBER, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT = 0, 4, 16, 24
X32 = 0x40000000
NAMESPACE_FLAGS = 0x7E020080
"""CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
CLONE_FLAGS = NAMESPACE_FLAGS & ~0x80
"""For clone, the bit of NEWTIME belongs to the number of the signal."""
SOCKET_FAMILIES = (1, 2, 10, 16)
"""UNIX, INET, INET6, NETLINK. VSOCK has no namespaces: it would reach the machine's own host."""
TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX write into another program's terminal."""


@dataclass(frozen=True)
class Machine:
    """A processor's numbers of calls."""

    audit: int
    refused: dict[str, int]
    absent: dict[str, int]
    """Answered as if the kernel did not have them; programs then use others."""
    clone: int
    socket: int
    ioctl: int
    memory: dict[str, int]
    """Memory that belongs to no process and no folder, refused where no control group counts it."""


NEW = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435,
    "memfd_secret": 447,
}  # fmt: skip
MOUNTS = {
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443,
}  # fmt: skip
MACHINES = {
    "x86_64": Machine(
        audit=0xC000003E,
        refused=MOUNTS | {
            "ptrace": 101, "syslog": 103, "pivot_root": 155, "adjtimex": 159, "acct": 163,
            "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
            "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179,
            "lookup_dcookie": 212, "clock_settime": 227, "kexec_load": 246, "add_key": 248,
            "request_key": 249, "keyctl": 250, "migrate_pages": 256, "unshare": 272, "move_pages": 279,
            "perf_event_open": 298, "name_to_handle_at": 303, "open_by_handle_at": 304,
            "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
            "kcmp": 312, "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
        },
        absent=NEW, clone=56, socket=41, ioctl=16, memory={"shmget": 29, "memfd_create": 319},
    ),
    "aarch64": Machine(
        audit=0xC00000B7,
        refused=MOUNTS | {
            "lookup_dcookie": 18, "umount2": 39, "mount": 40, "pivot_root": 41, "quotactl": 60, "acct": 89,
            "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112,
            "syslog": 116, "ptrace": 117, "reboot": 142, "settimeofday": 170, "adjtimex": 171, "add_key": 217,
            "request_key": 218, "keyctl": 219, "swapon": 224, "swapoff": 225, "migrate_pages": 238,
            "move_pages": 239, "perf_event_open": 241, "name_to_handle_at": 264, "open_by_handle_at": 265,
            "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271,
            "kcmp": 272, "finit_module": 273, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
        },
        absent=NEW, clone=220, socket=198, ioctl=29, memory={"shmget": 194, "memfd_create": 279},
    ),
}  # fmt: skip


def call_filter(*, counts_memory: bool) -> bytes:
    """The filter for this machine; b"" for a processor whose numbers are not known here.

    `counts_memory`: a control group counts all memory.
    """
    machine = MACHINES.get(platform.machine())
    if machine is None:
        return b""
    absent = machine.absent if counts_memory else machine.absent | machine.memory
    no_such = REFUSE | errno.ENOSYS
    program = [
        (LOAD, 0, 0, ARCHITECTURE),
        (JUMP_EQUAL, 1, 0, machine.audit),
        (RETURN, 0, 0, no_such),
        (LOAD, 0, 0, NUMBER),
    ]
    if machine.audit == MACHINES["x86_64"].audit:
        program += [(JUMP_GREATER_EQUAL, 0, 1, X32), (RETURN, 0, 0, no_such)]
    for numbers, answer in ((machine.refused, errno.EPERM), (absent, errno.ENOSYS)):
        for number in numbers.values():
            program += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE | answer)]
    refused = (RETURN, 0, 0, REFUSE | errno.EPERM)
    program += _if_call(
        machine.clone, [(LOAD, 0, 0, FIRST_ARGUMENT), (JUMP_ANY_BIT, 0, 1, CLONE_FLAGS), refused]
    )
    terminal = [(LOAD, 0, 0, SECOND_ARGUMENT)]
    for request in TERMINAL_INPUT:
        terminal += [(JUMP_EQUAL, 0, 1, request), refused]
    program += _if_call(machine.ioctl, terminal)
    families = [(LOAD, 0, 0, FIRST_ARGUMENT)]
    for family in SOCKET_FAMILIES:
        families += [(JUMP_EQUAL, 0, 1, family), (RETURN, 0, 0, ALLOW)]
    program += _if_call(machine.socket, [*families, (RETURN, 0, 0, REFUSE | errno.EAFNOSUPPORT)])
    program.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("HBBI", *entry) for entry in program)


def _if_call(number: int, then: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """`then` and permission for one call; others jump over it."""
    block = [*then, (RETURN, 0, 0, ALLOW)]
    return [(JUMP_EQUAL, 0, len(block), number), *block]
