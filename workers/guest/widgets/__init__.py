"""Widgets of all programs, by calls on the accessibility bus."""

import struct

HEAD = struct.Struct("<IB")
"""Of the reader's answers: length, and 1 = this is it, 0 = this went wrong."""
