"""QEMU virtual machines: base images, machine command lines, processes, boot phases, templates.

images.py    the registry of base images, never written
machine.py   the command line of a machine; equal machines have equal lines
accel.py     which accelerator works here, found by booting
process.py   one QEMU process and its monitor
boot.py      from power on to a screen at rest, phase by phase
stream.py    what a machine changed of its template, out of its saved state
snapshots.py what a running machine was at one moment
branching.py takes snapshots and wakes machines up from them
templates.py paused machines on disk, from which desktops are cloned
lab.py       makes templates and clones: what the provider is built of
"""
