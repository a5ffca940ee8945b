"""The X server of a virtual machine: Xorg on the machine's own display, without udev.

The kernel's device list is written into the server's configuration, so nothing has to be detected.
"""

import glob
import os

LAYOUT = """
Section "ServerFlags"
    Option "AutoAddDevices" "false"
    Option "AutoEnableDevices" "false"
    Option "DontVTSwitch" "true"
    Option "DontZap" "true"
    Option "BlankTime" "0"
    Option "StandbyTime" "0"
    Option "SuspendTime" "0"
    Option "OffTime" "0"
EndSection
Section "Extensions"
    Option "GLX" "Disable"
EndSection
Section "Device"
    Identifier "display"
    Driver "modesetting"
    Option "AccelMethod" "none"
    # The host takes its pictures from the framebuffer, so the pointer has to be drawn there.
    Option "SWcursor" "true"
EndSection
Section "ServerLayout"
    Identifier "desk"
{references}
EndSection
"""
DEVICE = """Section "InputDevice"
    Identifier "{name}"
    Driver "evdev"
    Option "Device" "{path}"
    Option "XkbRules" "evdev"
    Option "XkbModel" "pc105"
    Option "XkbLayout" "us"
EndSection
"""
EV_KEY, EV_REL, EV_ABS, EV_REP = 1, 2, 3, 20
MODES = "/sys/class/drm/card*-*/modes"
FALLBACK_SIZE = (1280, 720)


def screen_size() -> tuple[int, int]:
    """The display's preferred mode, pixels: what the machine's owner asked for, by EDID."""
    for path in sorted(glob.glob(MODES)):
        with open(path, encoding="ascii") as file:
            first = file.readline().strip()
        if first:
            width, _, height = first.partition("x")
            return int(width), int(height)
    return FALLBACK_SIZE


def input_devices(root: str = "/sys/class/input") -> dict[str, str]:
    """event device -> "CoreKeyboard" or "CorePointer", by what it can report."""
    found: dict[str, str] = {}
    for name in sorted(os.listdir(root)):
        if not name.startswith("event"):
            continue
        with open(f"{root}/{name}/device/capabilities/ev", encoding="ascii") as file:
            events = int(file.read(), 16)
        if events >> EV_KEY & 1 and events >> EV_REP & 1:
            found[name] = "SendCoreEvents" if "CoreKeyboard" in found.values() else "CoreKeyboard"
        elif events >> EV_ABS & 1 or events >> EV_REL & 1:
            found[name] = "SendCoreEvents" if "CorePointer" in found.values() else "CorePointer"
    return found


def configuration(devices: dict[str, str]) -> str:
    """Text of xorg.conf for these devices."""
    parts = [DEVICE.format(name=name, path=f"/dev/input/{name}") for name in devices]
    references = [f'    InputDevice "{name}" "{role}"' for name, role in devices.items()]
    return "".join(parts) + LAYOUT.format(references="\n".join(references))


def argv(run_dir: str, display_fd: int) -> list[str]:
    """Write the configuration and return the server's command line. Needs root."""
    config = os.path.join(run_dir, "xorg.conf")
    with open(config, "w", encoding="ascii") as file:
        file.write(configuration(input_devices()))
    return [
        "Xorg", ":0", "vt1", "-config", config, "-logfile", os.path.join(run_dir, "Xorg.log"),
        "-nolisten", "tcp", "-noreset", "-novtswitch", "-ac", "-s", "0", "-dpms", "-quiet",
        "-displayfd", str(display_fd),
    ]  # fmt: skip
