"""QEMU virtual machines: every desktop is a clone of a paused template.

    base image --boot--> template --clone--> desktop          templates_and_clones.py makes both
               desktop --save--> snapshot --clone--> desktop  branch_snapshots.py
A machine is described by machine_identity.py, command_line.py and devices.py, and runs as vm_process.py; its
screen and input are qmp_console.py, or driverless_console.py for guests without drivers of ours.
"""
