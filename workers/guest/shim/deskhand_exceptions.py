"""Exceptions under pyautogui's names."""


class PyAutoGUIException(Exception):
    """Raised for a call that makes no sense."""


class FailSafeException(PyAutoGUIException):
    """Raised when FAILSAFE is on and the pointer is in a corner."""


class ImageNotFoundException(PyAutoGUIException):
    """Never raised here; programs name it."""
