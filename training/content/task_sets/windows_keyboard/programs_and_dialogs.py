"""What level 1 of windows-keyboard opens: programs and windows that every English Windows has.

None of them asks for rights. Of the programs, some are missing in some editions (WordPad since Windows 11
24H2): their tasks fail verification there and are left out by it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    command: str
    """What the Run dialog starts."""
    title: str
    """What people call it."""
    processes: tuple[str, ...]
    """What its process may be called, without .exe, lower case."""


PROGRAMS = (
    Program("notepad", "Notepad", ("notepad",)),
    Program("mspaint", "Paint", ("mspaint",)),
    Program("calc", "the Calculator", ("calc", "win32calc", "calculator", "calculatorapp")),
    Program("wordpad", "WordPad", ("wordpad",)),
    Program("charmap", "the Character Map", ("charmap",)),
    Program("msinfo32", "System Information", ("msinfo32",)),
    Program("mstsc", "Remote Desktop Connection", ("mstsc",)),
    Program("winver", "About Windows", ("winver",)),
    Program("taskmgr", "the Task Manager", ("taskmgr",)),
    Program("osk", "the On-Screen Keyboard", ("osk",)),
    Program("magnify", "the Magnifier", ("magnify",)),
    Program("dxdiag", "the DirectX Diagnostic Tool", ("dxdiag",)),
    Program("cleanmgr", "Disk Cleanup", ("cleanmgr",)),
    Program("psr", "the Steps Recorder", ("psr",)),
    Program("colorcpl", "Color Management", ("colorcpl",)),
    Program("cmd", "the Command Prompt", ("cmd",)),
)

DIALOGS = (
    ("Mouse Properties", "the mouse settings (Mouse Properties)", "main.cpl"),
    ("Keyboard Properties", "the keyboard settings (Keyboard Properties)", "control keyboard"),
    ("Sound", "the sound settings (Sound)", "mmsys.cpl"),
    ("Date and Time", "the Date and Time window", "timedate.cpl"),
    ("Region", "the Region window", "intl.cpl"),
    ("Network Connections", "Network Connections", "ncpa.cpl"),
    ("Power Options", "Power Options", "powercfg.cpl"),
    ("Internet Properties", "Internet Properties", "inetcpl.cpl"),
    ("Programs and Features", "Programs and Features", "appwiz.cpl"),
    ("Game Controllers", "Game Controllers", "joy.cpl"),
    ("System Properties", "System Properties", "sysdm.cpl"),
    ("Fonts", "the Fonts folder", "control fonts"),
    ("Public", "the folder C:\\Users\\Public", "C:\\Users\\Public"),
    ("System32", "the folder C:\\Windows\\System32", "C:\\Windows\\System32"),
)
"""(title of the window, words of the instruction, command of the Run dialog)."""
