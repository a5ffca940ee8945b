"""What stands between the server and Django, for HTTP and WebSockets."""
