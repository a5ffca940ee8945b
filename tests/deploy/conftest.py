"""The client is written before its tests are imported."""

from testing.set_up import set_up

set_up("client")
