"""What travels between processes and what is configured: pydantic and the standard library only."""
