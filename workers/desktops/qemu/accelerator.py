"""Which accelerator works on this machine: found by really booting, and remembered.

A KVM device proves nothing: it may be there, open, and hang with the first guest (nested or paravirtual
hosts). So the guest's own kernel is booted without a disk, where it panics at once and ends QEMU.
"""

import json
import logging
import os
import platform
import subprocess
import time
from pathlib import Path

from workers.desktops.qemu.command_line import CPU, MACHINE, PROGRAM, qemu_version

log = logging.getLogger("deskhost")

KVM_DEVICE = Path("/dev/kvm")
KNOWN_BAD_MODULE = Path("/sys/module/kvm_pvm")
"""Runs guests only that were built for it; others hang."""
PROBE_LIMIT_S = 15.0
"""Emulated without KVM the probe takes 2 to 9 s."""


def accelerator(kernel: Path | None, cache: Path) -> tuple[str, str]:
    """("kvm" | "tcg", why). The verdict is kept in `cache` until kernel, QEMU or host kernel change."""
    if reason := kvm_problem():
        return "tcg", reason
    if kernel is None:
        return "tcg", "the image has no kernel of its own to try KVM with"
    conditions = [qemu_version(), platform.release(), str(kernel), kernel.stat().st_mtime_ns]
    try:
        kept = json.loads(cache.read_text())
        if kept["conditions"] == conditions:
            return kept["accelerator"], kept["reason"]
    except (OSError, ValueError, KeyError):
        pass  # no verdict yet, or one that a crash cut off
    verdict, reason = _try_kvm(kernel)
    partial = cache.with_suffix(".part")
    partial.write_text(json.dumps({"conditions": conditions, "accelerator": verdict, "reason": reason}))
    os.replace(partial, cache)
    return verdict, reason


def kvm_problem() -> str:
    """Why KVM needs no trial here, "" when only a boot can tell."""
    if not os.access(KVM_DEVICE, os.R_OK | os.W_OK):
        return f"{KVM_DEVICE} cannot be opened"
    if KNOWN_BAD_MODULE.exists():
        return "this host's KVM (pvm) runs only guests that were built for it"
    return ""


def _try_kvm(kernel: Path) -> tuple[str, str]:
    argv = [PROGRAM, "-machine", MACHINE, "-accel", "kvm", "-cpu", CPU["kvm"], "-m", "256M"]
    argv += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    argv += ["-kernel", str(kernel), "-append", "panic=-1"]
    started = time.monotonic()
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "tcg", f"KVM is there but a guest did not boot with it in {PROBE_LIMIT_S:g} s"
    took_s = time.monotonic() - started
    if done.returncode:
        return "tcg", f"KVM refused a guest: {done.stderr.decode(errors='replace').strip()[:200]}"
    log.info("a guest booted with KVM in %.1f s", took_s)
    return "kvm", f"a guest booted with KVM in {took_s:.1f} s"
