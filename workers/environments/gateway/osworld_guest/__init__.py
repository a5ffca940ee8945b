"""Vendor `osworld-guest`: a gateway in front of OSWorld's own in-guest servers.

vendor.py  sandboxes by the reference vendor's lifecycle calls, everything inside by OSWorld's routes
"""
