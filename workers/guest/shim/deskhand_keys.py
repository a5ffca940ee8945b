"""pyautogui's names of keys -> X keysym names."""

KEYS = {
    "enter": "Return", "return": "Return", "esc": "Escape", "escape": "Escape", "backspace": "BackSpace",
    "del": "Delete", "delete": "Delete", "insert": "Insert", "tab": "Tab", "space": "space", "up": "Up",
    "down": "Down", "left": "Left", "right": "Right", "home": "Home", "end": "End", "pageup": "Prior",
    "pgup": "Prior", "pagedown": "Next", "pgdn": "Next", "capslock": "Caps_Lock", "numlock": "Num_Lock",
    "scrolllock": "Scroll_Lock", "pause": "Pause", "print": "Print", "printscreen": "Print", "prtsc": "Print",
    "prtscr": "Print", "prntscrn": "Print", "apps": "Menu", "help": "Help", "select": "Select",
    "ctrl": "Control_L", "ctrlleft": "Control_L", "ctrlright": "Control_R", "shift": "Shift_L",
    "shiftleft": "Shift_L", "shiftright": "Shift_R", "alt": "Alt_L", "altleft": "Alt_L", "altright": "Alt_R",
    "option": "Alt_L", "optionleft": "Alt_L", "optionright": "Alt_R", "win": "Super_L", "winleft": "Super_L",
    "winright": "Super_R", "command": "Super_L", "add": "KP_Add", "subtract": "KP_Subtract",
    "multiply": "KP_Multiply", "divide": "KP_Divide", "decimal": "KP_Decimal", "separator": "KP_Separator",
    "volumeup": "XF86_AudioRaiseVolume", "volumedown": "XF86_AudioLowerVolume",
    "volumemute": "XF86_AudioMute",
    **{f"num{n}": f"KP_{n}" for n in range(10)},
    **{f"f{n}": f"F{n}" for n in range(1, 25)},
}  # fmt: skip
