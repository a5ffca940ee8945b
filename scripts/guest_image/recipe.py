"""What goes into a guest image: packages, kernel modules, what is left out, how it is started.

One recipe per row of RECIPES. Everything comes from the distribution's own archive.
"""

from dataclasses import dataclass

from setup_system import listed

SUITE = "bookworm"
OS_NAME = "Debian 12 (bookworm)"
QEMU_ARCH = "x86_64"
DEFAULT_MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

USER = "user"
HOME = "/home/user"
PROGRAM_ROOT = "/opt/deskhand"
AGENT_PORT = 5000

DESKTOP_PACKAGES = (
    # system
    "bash", "coreutils", "findutils", "grep", "sed", "gawk", "procps", "psmisc", "iproute2", "kmod",
    "less", "file", "zip", "unzip", "bzip2", "xz-utils", "tzdata", "netbase", "ca-certificates",
    # display and session
    "xserver-xorg-core", "xserver-xorg-input-evdev", "x11-utils", "x11-xkb-utils", "xkb-data",
    "dbus-x11", "at-spi2-core", "libatk-adaptor", "libgail-common", "openbox", "tint2",
    "wmctrl", "xdotool", "xclip",
    # applications: those of the x11 desktops
    "mousepad", "pcmanfm", "galculator", "xterm", "lxterminal", "zenity",
    # what they look like
    "fonts-dejavu-core", "adwaita-icon-theme", "shared-mime-info", "desktop-file-utils", "xdg-utils",
    "libgdk-pixbuf2.0-bin",
    # the agent
    "python3", "python-is-python3", "python3-tk", "python3-xlib", "python3-pil", "python3-gi",
    "gir1.2-gtk-3.0", "gir1.2-atspi-2.0", "python3-lxml",
)  # fmt: skip
BOOT_PACKAGES = ("busybox-static",)
"""Fetched and unpacked for kernel and initramfs only, not installed."""
KERNEL_META_PACKAGE = "linux-image-amd64"
"""Not linux-image-cloud-amd64: that one has no display driver."""

KERNEL_MODULES = (
    # disk and file systems
    "virtio_pci", "virtio_blk", "crc32c_generic", "quota_v2", "ext4", "ata_piix", "ahci", "sd_mod", "sr_mod",
    "isofs",
    # screen and input
    "bochs", "virtio_gpu", "evdev", "virtio_input", "psmouse", "mousedev", "hid_generic", "usbhid",
    "uhci_hcd", "ehci_pci", "xhci_pci",
    # network, entropy, host channels
    "virtio_net", "e1000", "virtio_rng", "virtio_console", "virtio_balloon", "af_packet",
)  # fmt: skip

LEFT_OUT = (
    "/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*",
    "/usr/share/gtk-doc/*", "/usr/share/help/*", "/usr/share/bug/*", "/usr/share/lintian/*",
    # Software rendering of OpenGL: 130 MB that a desktop without 3D never loads.
    "/usr/lib/*/libLLVM*", "/usr/lib/*/dri/*", "/usr/lib/*/libz3*",
    # The hardware database of udev, which does not run here.
    "/usr/lib/udev/hwdb*", "/usr/share/poppler/*", "/usr/share/iso-codes/*",
)  # fmt: skip
KEPT = ("/usr/share/doc/*/copyright",)
"""Licences stay with the programs."""

KERNEL_ARGS = (
    "console=ttyS0", "quiet", "root=/dev/vda", "rw", "mitigations=off", "nokaslr", "audit=0",
    "random.trust_cpu=on", "net.ifnames=0", "panic=-1", "vt.global_cursor_default=0",
)  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """One image."""

    name: str
    summary: str
    extra_packages: tuple[str, ...] = ()
    width: int = 1280
    height: int = 720
    memory_mb: int = 1024
    slack_mb: int = 1024
    """Room on the disk for what tasks write; costs nothing in the image file."""
    overlays: tuple[str, ...] = ("rootfs",)
    """Folders of workers/guest_image/ with own files, the later ones over the earlier ones."""
    hard_links: tuple[tuple[str, str], ...] = ()
    """(new name, program): the kernel calls a process by the name that it was started under."""
    alternatives: tuple[tuple[str, str], ...] = ()
    """(name, program) for update-alternatives."""
    layout: tuple[tuple[str, int], ...] = ()
    """Limits of the agent's layout.json that differ from those of debian-desk."""

    @property
    def packages(self) -> tuple[str, ...]:
        return tuple(sorted({*DESKTOP_PACKAGES, *self.extra_packages}))


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("debian-desk", "openbox, file manager, editor, terminal, calculator, dialogs"),
        Recipe(
            "debian-office",
            "debian-desk with LibreOffice, Chromium, GIMP, VLC, Thunderbird, Nautilus and screen recording",
            extra_packages=(
                *listed("system-office.txt"),
                *listed("system-osworld.txt"),
                "python3-uno",
                "ffmpeg",
            ),
            memory_mb=3072,
            slack_mb=4096,
            overlays=("rootfs", "office"),
            hard_links=(("/usr/lib/chromium/chrome", "/usr/lib/chromium/chromium"),),
            alternatives=(("x-terminal-emulator", "/usr/bin/gnome-terminal.wrapper"),),
            # A browser and a mail program have some hundred threads each.
            layout=(("max_processes", 1024), ("disk_mb", 2048)),
        ),
    )
}  # fmt: skip
