"""The API of AReaL's OSWorld remote_server."""
