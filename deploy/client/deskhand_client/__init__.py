"""Deskhand from Python: `Client` has one method per operation of the API."""

from deskhand_client.client import Client
from deskhand_client.transport import ApiError, Unreachable

__all__ = ["ApiError", "Client", "Unreachable"]
