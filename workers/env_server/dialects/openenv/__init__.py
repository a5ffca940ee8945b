"""OpenEnv's protocol, with rewards, over HTTP and its WebSocket."""
