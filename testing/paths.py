"""Folders of this checkout."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
