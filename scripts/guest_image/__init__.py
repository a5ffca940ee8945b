"""Builds the desktop image of virtual machines; run by `make guest-image`."""
