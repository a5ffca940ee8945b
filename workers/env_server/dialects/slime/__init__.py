"""The HTTP protocol of Slime-OSWorld's env server."""
